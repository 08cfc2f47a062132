"""Fetch: every version, every limit, sessions, as Apache Kafka answers them."""

from functools import partial
from typing import Any

import pytest
from tests.differential.side_by_side import Both, Side, fetched, fill, produced, versions_of
from tests.support.data_plane import batch_of, fetch_request, produce_request

from ottla.wire.apis import ApiKey
from ottla.wire.messages.fetch import FetchRequest, ReplicaState

FETCHES: list[dict[str, Any]] = [
    {},
    {"offset": 5},
    {"offset": -1},
    {"offset": 15},
    {"offset": 16},
    {"partition": 9},
    {"topic": "no-such-topic"},
    {"isolation_level": 1},
    {"partition_max_bytes": 10},
    {"partition_max_bytes": 200},
    {"partition_max_bytes": 0},
    {"max_bytes": 10},
    {"max_bytes": 0},
    {"session_id": 77, "session_epoch": 5},
    {"session_id": 0, "session_epoch": 3},
    {"session_id": 5, "session_epoch": -1},
]
WITH_EPOCH: list[dict[str, Any]] = [{"current_leader_epoch": epoch} for epoch in (0, 5)]
WITH_LAST_EPOCH: list[dict[str, Any]] = [
    {"last_fetched_epoch": 0},
    {"last_fetched_epoch": 3, "offset": 5},
    {"last_fetched_epoch": 0, "offset": 1000},
]


@pytest.mark.parametrize("version", versions_of(ApiKey.FETCH))
def test_fetch_in_every_version(both: Both, version: int) -> None:
    topic = f"fetched-{version}"
    fill(both, topic)
    cases = FETCHES + (WITH_EPOCH if version >= 9 else []) + (WITH_LAST_EPOCH if version >= 12 else [])
    for case in cases:
        if version < 7 and "session_id" in case:
            continue

        def make(side: Side, case: dict[str, Any] = case) -> FetchRequest:
            settings = {"offset": 0, "topic": topic, "max_wait_ms": 1, **case}
            name = side.topic(settings.pop("topic"), version >= 13)
            return fetch_request(name, **settings)

        both.ask(make, version, fetched)


def test_who_says_that_it_is_a_replica(both: Both) -> None:
    fill(both, "replicas")
    for replica_id in (-2, 5):
        state = ReplicaState(replica_id=replica_id)
        both.ask(fetch_request("replicas", 0, replica_id=replica_id), 12, fetched)
        both.ask(partial(_fetch_as, state=state), 17, fetched)


def _fetch_as(side: Side, state: ReplicaState) -> FetchRequest:
    return fetch_request(side.ids["replicas"], 0, replica_state=state)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_fetch_sessions(both: Both, version: int) -> None:
    topic = f"sessions-{version}"
    fill(both, topic)

    def begin(side: Side) -> FetchRequest:
        return fetch_request(side.topic(topic, version >= 13), 0, session_id=0, session_epoch=0)

    answers = [side.client.ask(begin(side), version) for side in both.sides]
    for side, answer in zip(both.sides, answers, strict=True):
        side.session_id = answer.session_id
        assert side.session_id > 0

    def go_on(epoch: int, offset: int | None = None) -> Any:
        def make(side: Side) -> FetchRequest:
            if offset is None:
                return FetchRequest(
                    max_wait_ms=1, min_bytes=1, topics=(), session_id=side.session_id, session_epoch=epoch
                )
            return fetch_request(
                side.topic(topic, version >= 13),
                offset,
                max_wait_ms=1,
                session_id=side.session_id,
                session_epoch=epoch,
            )

        return both.ask(make, version, fetched)

    assert len(go_on(1)[2]) == 1, "records are news as long as the reader does not move on"
    assert go_on(2, offset=15)[2] == []
    assert go_on(3)[2] == []
    both.ask(produce_request(topic, batch_of(b"news")), 12, produced)
    assert len(go_on(4)[2]) == 1
    assert len(go_on(4)[2]) == 0, "an epoch that was used is refused"
    assert go_on(5, offset=16)[2] == []
    go_on(6, offset=99)
    go_on(7, offset=16)
    go_on(-1)
    go_on(8)
