"""How far and how much a fetch may read, by who asks and in which version."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.apis.records.fetch import _limits
from ottla.storage.read import ReadLimit
from ottla.wire.messages.fetch import FetchRequest, ReplicaState

NEAREST = object()


class Context:
    """A request of a client, at a node that sends clients to the nearest replica."""

    user, client_id = "User:ann", "reader"

    def __init__(self, version: int, *, has_selector: bool = True, allowed: int | None = None) -> None:
        self.version = version
        selector = "rack-aware" if has_selector else None
        self.config = SimpleNamespace(fetch_max_bytes=5_000, replica_selector_class=selector)
        self.racks: list[str] = []
        self.quotas = SimpleNamespace(
            limits_fetch=allowed is not None, bytes_max=lambda _kind, _user, _client: allowed
        )
        self.clock = SimpleNamespace(monotonic_ms=lambda: 77)
        self.exceeded_at: list[int] = []
        self.sending = SimpleNamespace(is_exceeded=self._is_exceeded)

    @property
    def broker(self) -> Any:
        return self

    @property
    def replication(self) -> Any:
        return self

    def selector_for(self, rack: str) -> Any:
        self.racks.append(rack)
        return NEAREST

    def _is_exceeded(self, now_ms: int) -> bool:
        self.exceeded_at.append(now_ms)
        return True


def _of(context: Any, **asked: Any) -> Any:
    given = {"max_wait_ms": 0, "min_bytes": 0, "topics": (), "max_bytes": 9_000, **asked}
    return _limits(FetchRequest(**given), context)


@pytest.mark.parametrize(("version", "knows"), [(10, False), (11, True), (12, True), (18, True)])
def test_clients_know_of_other_replicas_since_version_11(version: int, knows: bool) -> None:
    assert _of(Context(version)).reads_followers is knows


def test_a_client_that_says_where_it_is_is_sent_to_the_nearest_if_the_node_does_that() -> None:
    context = Context(12)
    assert _of(context, rack_id="a").select_replica is NEAREST
    assert context.racks == ["a"]
    assert _of(Context(12), rack_id="").select_replica is None
    assert _of(Context(12, has_selector=False), rack_id="a").select_replica is None


@pytest.mark.parametrize(("version", "tells"), [(15, False), (16, True)])
def test_the_leader_is_told_since_version_16(version: int, tells: bool) -> None:
    assert _of(Context(version)).tells_leader is tells


@pytest.mark.parametrize(
    ("replica_id", "isolation", "limit"),
    [
        (-1, 0, ReadLimit.HIGH_WATERMARK),
        (-1, 1, ReadLimit.LAST_STABLE),
        (-2, 0, ReadLimit.LOG_END),
        (-2, 1, ReadLimit.LOG_END),
        (5, 0, ReadLimit.LOG_END),
    ],
)
def test_who_asks_decides_how_far_is_read(replica_id: int, isolation: int, limit: ReadLimit) -> None:
    for version in (12, 17):
        who: dict[str, Any] = {"replica_id": replica_id}
        if version >= 15:
            who = {"replica_state": ReplicaState(replica_id=replica_id, replica_epoch=8)}
        assert _of(Context(version), isolation_level=isolation, **who).limit is limit


@pytest.mark.parametrize(("allowed", "bytes_max"), [(None, 5_000), (300, 300), (7_000, 5_000), (0, 0)])
def test_clients_have_quotas_and_a_limit(allowed: int | None, bytes_max: int) -> None:
    assert _of(Context(12, allowed=allowed)).bytes_max == bytes_max
    assert _of(Context(12), max_bytes=40).bytes_max == 40


def test_another_node_reads_what_it_asks_for() -> None:
    context = Context(17, allowed=10)
    state = ReplicaState(replica_id=5, replica_epoch=8)
    limits = _of(context, replica_state=state, rack_id="a")
    assert (limits.replica_id, limits.replica_epoch, limits.bytes_max) == (5, 8, 9_000)
    assert (limits.now_ms, limits.is_sending_exceeded, context.exceeded_at) == (77, True, [77])
    assert limits.is_follower
    assert limits.select_replica is None
    assert not limits.reads_followers
