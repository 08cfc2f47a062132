"""Groups and their offsets survive a change of the server on one directory: Ottla, Apache Kafka, and back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.differential.group_talks import RETRIABLE, Talk, join_alone
from tests.java.apache_kafka import ApacheKafka
from tests.support.group_requests import (
    TOPIC,
    commit_request,
    delete_request,
    describe_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    list_request,
    sync_request,
)
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.wire.error_code import ErrorCode

# No member's session ends while servers are changed.
LONG_SESSION_MS = 600_000
PROPERTIES = {
    "node.id": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
GROUPS = ("simple", "deleted", "left", "stable", "static", "newer")


def joined(talk: Talk, group: str, instance_id: str | None = None) -> tuple[str, int]:
    """Be the only member of a group, in a session that outlasts the test."""
    request = join_request(group, instance_id=instance_id, session_timeout_ms=LONG_SESSION_MS)
    answer = talk.client(group).ask(request)
    if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
        again = join_request(group, answer.member_id, session_timeout_ms=LONG_SESSION_MS)
        answer = talk.client(group).ask(again)
    member, generation = answer.member_id, answer.generation_id
    sync = sync_request(
        group, generation, member, {member: b"for " + group.encode()}, instance_id=instance_id
    )
    assert talk.client(group).ask(sync).error_code is ErrorCode.NONE
    return member, generation


def commit(talk: Talk, group: str, offset: int, member: str = "", generation: int = -1) -> None:
    request = commit_request(
        group, {0: offset, 1: offset + 1}, generation=generation, member_id=member, metadata=f"note {offset}"
    )
    answer = talk.client().ask(request, 9)
    assert {part.error_code for part in answer.topics[0].partitions} == {ErrorCode.NONE}, answer


def view(talk: Talk) -> list[Any]:
    """Return all that clients can see of the groups, as soon as all of them are loaded."""
    client = talk.client()
    described = [until_loaded(partial(describe, client, group)) for group in GROUPS]
    offsets = [client.ask(fetch_request(group, topics={TOPIC: (0, 1, 2)}), 9).groups[0] for group in GROUPS]
    listed = until_loaded(lambda: client.ask(list_request()))
    groups = sorted((group for group in listed.groups if group.group_id in GROUPS), key=repr)
    return [groups, described, offsets]


def describe(client: PlainClient, group: str) -> Any:
    return client.ask(describe_request(group)).groups[0]


def until_loaded(ask: Callable[[], Any]) -> Any:
    while (answer := ask()).error_code in RETRIABLE:
        pass
    return answer


@pytest.mark.thorough(guard="tests/golden/test_groups.py")
def test_groups_go_from_ottla_to_apache_kafka_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        talk.prepare()
        commit(talk, "simple", 100)
        commit(talk, "deleted", 200)
        assert talk.client().ask(delete_request("deleted")).results[0].error_code is ErrorCode.NONE
        left, generation = join_alone(talk, "left")
        talk.client().ask(sync_request("left", generation, left, {left: b"all"}))
        commit(talk, "left", 300, left, generation)
        talk.client().ask(leave_request("left", (left, None)))
        stable = joined(talk, "stable")
        commit(talk, "stable", 400, *stable)
        static = joined(talk, "static", "instance")
        seen = view(talk)
        talk.close()

    with ApacheKafka(tmp_path / "kafka", PROPERTIES, data_directory=data) as kafka:
        talk = Talk(kafka.bootstrap)
        assert view(talk) == seen
        assert (
            talk.client().ask(heartbeat_request("stable", stable[1], stable[0])).error_code is ErrorCode.NONE
        )
        beat = heartbeat_request("static", static[1], static[0], "instance")
        assert talk.client().ask(beat).error_code is ErrorCode.NONE
        commit(talk, "stable", 410, *stable)
        commit(talk, "simple", 110)
        newer = joined(talk, "newer")
        commit(talk, "newer", 500, *newer)
        assert talk.client().ask(delete_request("left")).results[0].error_code is ErrorCode.NONE
        seen = view(talk)
        talk.close()

    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        assert view(talk) == seen
        for group, (member, generation) in (("stable", stable), ("newer", newer)):
            beat = heartbeat_request(group, generation, member)
            assert talk.client().ask(beat).error_code is ErrorCode.NONE
            commit(talk, group, 600, member, generation)
        seen = view(talk)
        talk.close()
        node.kill()
        node.start()
        talk = Talk(node.bootstrap)
        assert view(talk) == seen
        talk.close()
