"""What must hold of the coordinators of groups and transactions.

A coordinator serves as long as its node leads the partition, in the epoch in which it was loaded. When all is
quiet, what it knows is what its log says, read by a simple model.
"""

from collections.abc import Sequence
from typing import Any, Final

from tests.simulation.cluster.rules.observing import read_all_unnoticed
from tests.simulation.cluster.rules.wrong import Wrong, must
from tests.simulation.storage.batches import read_batches, read_records

from ottla.broker.coordinators.hosted_coordinator import HostedCoordinator
from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.shard import Shard, ShardStatus
from ottla.coordination.transaction.status import TransactionStatus
from ottla.storage.log import Log
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.coordinator_records.framing import CoordinatorRecords
from ottla.wire.coordinator_records.offsets import OffsetCommitKey
from ottla.wire.coordinator_records.transaction import TransactionLogKey

_NEXT: Final = {
    TransactionStatus.PREPARE_COMMIT: TransactionStatus.COMPLETE_COMMIT,
    TransactionStatus.PREPARE_ABORT: TransactionStatus.COMPLETE_ABORT,
}
LATE_US_MAX: Final = 500_000
"""How long a coordinator may take to see that its node does not lead any more."""


class CoordinatorRules:
    """Looks at coordinators."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        # Since when a coordinator serves that should not.
        self._late_us: dict[tuple[int, str, int], int] = {}

    def look(self, one: SimulatedNode) -> None:
        """A coordinator serves only what its node leads."""
        now_us = self._cluster.simulation.now_us
        for hosted in _coordinators(one):
            for shard in hosted.coordinator.shards:
                part = _partition_of(one, hosted, shard)
                is_right = part is not None and part.is_leader and part.leader_epoch == shard.epoch
                key = (one.node_id, hosted.topic, shard.partition)
                if is_right or shard.status is not ShardStatus.ACTIVE or one.machine.is_paused:
                    self._late_us.pop(key, None)
                    continue
                since_us = self._late_us.setdefault(key, now_us)
                if now_us - since_us > LATE_US_MAX:
                    raise Wrong(
                        f"coordinator: node {one.node_id} serves {hosted.topic}-{shard.partition} as of "
                        f"epoch {shard.epoch}, but its partition is {part}"
                    )

    def check_quiet(self, one: SimulatedNode) -> None:
        """What a coordinator knows is what its log says."""
        for hosted in _coordinators(one):
            for shard in hosted.coordinator.shards:
                part = _partition_of(one, hosted, shard)
                if part is None or not part.is_leader or shard.status is not ShardStatus.ACTIVE:
                    continue
                name = f"{hosted.topic}-{shard.partition} of node {one.node_id}"
                latest = _latest(part.log, hosted.records)
                if hosted.topic == "__transaction_state":
                    _check_steps(name, part.log, hosted.records)
                    _check_transactions(name, shard.state.transactions, latest)
                elif hosted.topic == "__consumer_offsets":
                    _check_offsets(name, shard.state.offsets, latest)


def check_producer_ids(nodes: Sequence[SimulatedNode]) -> None:
    """A producer id is given away once."""
    owners: dict[int, str] = {}
    for one in nodes:
        assert one.node is not None
        for shard in one.node.broker.transactions.coordinator.shards:
            for name, transaction in shard.state.transactions.items():
                owner = owners.setdefault(transaction.producer_id, name)
                must(
                    owner == name,
                    f"coordinator: {owner!r} and {name!r} have the producer id {transaction.producer_id}",
                )


def _coordinators(one: SimulatedNode) -> list[HostedCoordinator[Any]]:
    assert one.node is not None
    broker = one.node.broker
    return [broker.groups, broker.transactions]


def _partition_of(one: SimulatedNode, hosted: HostedCoordinator[Any], shard: Shard[Any]) -> Partition | None:
    assert one.node is not None
    return one.node.broker.partitions.find(hosted.topic, shard.partition)


def _latest(log: Log, kinds: CoordinatorRecords) -> dict[Any, Any]:
    """Return the last value of each key that counts: of transactions, those that were committed."""
    latest: dict[Any, tuple[int, Any]] = {}
    pending: dict[int, list[tuple[Any, int, Any]]] = {}
    for batch in read_batches(read_all_unnoticed(log)):
        if batch.is_control:
            for key, offset, value in pending.pop(batch.producer_id, []):
                if not batch.is_abort and latest.get(key, (-1, None))[0] < offset:
                    latest[key] = (offset, value)
            continue
        for record in read_records(batch):
            assert record.key is not None
            decoded = kinds.decode(record.key, record.value)
            change = (type(decoded.key), decoded.key), record.offset, getattr(decoded, "value", None)
            if batch.is_transactional and change[2] is not None:
                pending.setdefault(batch.producer_id, []).append(change)
            else:
                latest[change[0]] = change[1:]
    return {key: value for (_, key), (_, value) in latest.items() if value is not None}


def _check_steps(name: str, log: Log, kinds: CoordinatorRecords) -> None:
    """What is decided is completed as it was decided, before anything else happens to a transactional id."""
    last: dict[str, tuple[int, TransactionStatus]] = {}
    expected_offset = 0
    for batch in read_batches(read_all_unnoticed(log)):
        if batch.base_offset != expected_offset or batch.count != batch.last_offset - batch.base_offset + 1:
            # Compaction has taken records in between.
            last.clear()
        expected_offset = batch.last_offset + 1
        for record in () if batch.is_control else read_records(batch):
            assert record.key is not None
            decoded = kinds.decode(record.key, record.value)
            value = getattr(decoded, "value", None)
            if not isinstance(decoded.key, TransactionLogKey) or value is None:
                continue
            key, status = decoded.key.transactional_id, TransactionStatus(value.transaction_status)
            before = last.get(key)
            last[key] = (record.offset, status)
            if before is not None and before[1] in _NEXT:
                must(
                    status in (before[1], _NEXT[before[1]]),
                    f"coordinator: {name}: {key!r} was {before[1].name} at {before[0]}, then {status.name}",
                )


def _check_transactions(name: str, known: dict[str, Any], latest: dict[Any, Any]) -> None:
    for key, value in latest.items():
        if isinstance(key, TransactionLogKey):
            found = known.get(key.transactional_id)
            told = None if found is None else (found.producer_id, found.producer_epoch, int(found.status))
            expected = (value.producer_id, value.producer_epoch, value.transaction_status)
            must(
                told == expected,
                f"coordinator: {name}: {key.transactional_id!r} is {expected}, but is said to be {told}",
            )


def _check_offsets(name: str, known: Any, latest: dict[Any, Any]) -> None:
    expected = {
        (key.group, key.topic, key.partition): value.offset
        for key, value in latest.items()
        if isinstance(key, OffsetCommitKey)
    }
    told = {
        (group, place.topic, place.partition): offset.offset
        for group, offsets in known.all()
        for place, offset in offsets
    }
    must(told == expected, f"coordinator: {name}: offsets are {expected}, but are said to be {told}")
