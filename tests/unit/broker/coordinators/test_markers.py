"""Markers of which one is refused for good: the others are on disk all the same, and nothing is complete."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.coordinators import markers
from ottla.broker.coordinators.markers import MarkerWriter, WrittenMarker
from ottla.coordination.transaction.environment import Markers
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

PARTITIONS = frozenset((TopicPartition("a", 0), TopicPartition("b", 0)))


class GroupShard:
    """The shard of a group that holds its answers back until the marker is committed."""

    refusal = ErrorCode.NONE

    def __init__(self) -> None:
        self.committed: list[int] = []

    def commit_up_to(self, offset: int) -> None:
        self.committed.append(offset)


def write(monkeypatch: pytest.MonkeyPatch, *outcomes: WrittenMarker | ErrorCode) -> int:
    """Have markers written, one with each outcome. Returns how often all of them were said to be there."""
    left = list(outcomes)
    monkeypatch.setattr(markers, "append_marker", lambda *_: left.pop(0))
    told: list[None] = []
    nobody: Any = None
    record = SimpleNamespace(leader=1)
    topics = SimpleNamespace(find=lambda _name: SimpleNamespace(partitions={0: record}))
    broker: Any = SimpleNamespace(image=SimpleNamespace(topics=topics), node_id=1)
    writer = MarkerWriter(broker, nobody)
    asked = Markers("transactions", 1, 0, True, PARTITIONS, 0, 2)
    writer.write(asked, lambda: True, lambda: told.append(None))
    return len(told)


def written(shard: GroupShard) -> WrittenMarker:
    partition: Any = SimpleNamespace(
        topic="a", index=0, log=SimpleNamespace(when_committed=lambda _offset, tell: tell(None))
    )
    return WrittenMarker(partition, 7, shard)  # type: ignore[arg-type]


def test_all_that_are_written_complete_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = GroupShard()
    assert write(monkeypatch, written(shard), written(shard)) == 1
    assert shard.committed == [7, 7]


@pytest.mark.parametrize(
    "refusal", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
def test_a_refusal_for_good_leaves_no_group_waiting(
    monkeypatch: pytest.MonkeyPatch, refusal: ErrorCode
) -> None:
    shard = GroupShard()
    assert write(monkeypatch, written(shard), refusal) == 0
    assert shard.committed == [7]
