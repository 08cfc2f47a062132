"""Transaction markers: the outcome of a transaction, written into each of its partitions.

A marker in a partition of `__consumer_offsets` also ends what the transaction committed there, in the memory
of the group coordinator. Markers are repeated until every partition has one on disk, wherever its leader is
by then. What a repetition writes twice does no harm: the second ends nothing.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.coordinators.groups import TOPIC as GROUP_TOPIC
from ottla.broker.coordinators.remote_markers import Codes, Marker, RemoteMarkers
from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.decision import ProducerIdentity
from ottla.coordination.runtime.shard import AnyShard
from ottla.coordination.transaction.environment import Markers
from ottla.model.ids import Offset, TopicPartition
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.runtime.log_lines import repeated_lines
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.errors import AppendError, LeadershipLost, LogDirectoryOffline
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Scheduler

RETRY_MS: Final = 100

_lines: Final = repeated_lines("ottla.transactions")
_FOR_GOOD: Final = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED))
"""Refusals because the producer or the coordinator of this marker has been replaced."""


class WrittenMarker(NamedTuple):
    """A marker that was appended, and has to be committed."""

    partition: Partition
    offset: int
    shard: AnyShard | None
    """The group coordinator's shard, if it is one of its partitions."""


def append_marker(
    broker: CoordinatorsNode, topic_partition: TopicPartition, marker: Marker
) -> WrittenMarker | ErrorCode:
    """Append a marker to a partition that this node leads, or say why not."""
    partition = broker.partitions.find(topic_partition.topic, topic_partition.partition)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.has_enough_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if marker.producer_id < 0:
        # Deviation: Kafka writes what negative ids other than -1 ask for.
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    shard: AnyShard | None = None
    if topic_partition.topic == GROUP_TOPIC:
        shard = broker.groups.coordinator.shards.get(topic_partition.partition)
        if shard is None or shard.refusal is not ErrorCode.NONE:
            # A shard that is being loaded might read the marker, or might not.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        shard.write_out()
    now_ms = broker.clock.now_ms()
    batch = build_end_txn_batch(
        EndTxnMarker(marker.is_commit, marker.coordinator_epoch),
        timestamp=now_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )
    try:
        info = partition.append(
            memoryview(batch),
            now_ms,
            AppendOrigin.COORDINATOR,
            transaction_version=marker.transaction_version,
        )
    except AppendError as error:
        _lines.warn("a partition refused a transaction marker", f"{partition}: {error}")
        return error.error_code
    except LogDirectoryOffline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.parked:
        # There may be far more to read now than the marker itself.
        broker.changed(partition)
    if shard is not None:
        producer = ProducerIdentity(marker.producer_id, marker.producer_epoch)
        shard.end_transaction(producer, marker.is_commit, info.last_offset)
    return WrittenMarker(partition, info.last_offset, shard)


def when_markers_committed(
    written: Iterable[WrittenMarker], done: Callable[[list[WrittenMarker]], None]
) -> None:
    """Call `done` when all markers are committed or have failed: with those that have failed."""
    left = list(written)
    missing = len(left)
    failed: list[WrittenMarker] = []
    if not left:
        done(failed)
        return

    def settled(one: WrittenMarker, error: LogDirectoryOffline | LeadershipLost | None) -> None:
        nonlocal missing
        if error is not None:
            failed.append(one)
        elif one.shard is not None and one.shard.refusal is ErrorCode.NONE:
            one.shard.commit_up_to(one.offset)
        missing -= 1
        if missing == 0:
            done(failed)

    for one in left:
        one.partition.log.when_committed(Offset(one.offset + 1), partial(settled, one))


class MarkerWriter:
    """Writes the markers of this node's transaction coordinator."""

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._remote = RemoteMarkers(
            lambda broker_id: broker.replication.peer(broker_id, f"broker-{broker.node_id}-txn-marker-sender")
        )

    def close(self) -> None:
        """Stop. The next coordinator of these transactions writes the markers."""
        self._remote.close()

    def write(self, markers: Markers, is_current: Callable[[], bool], done: Callable[[], None]) -> None:
        """Write markers until all partitions have theirs; give up when the coordinator is not current."""
        self._write(markers, markers.partitions, is_current, done)

    def _write(
        self,
        markers: Markers,
        partitions: Iterable[TopicPartition],
        is_current: Callable[[], bool],
        done: Callable[[], None],
    ) -> None:
        if not is_current():
            return
        marker = Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.is_commit,
            markers.coordinator_epoch,
            markers.transaction_version,
        )
        by_leader = self._by_leader(partitions)
        missing = len(by_leader)
        told: dict[TopicPartition, ErrorCode] = {}

        def settled(codes: Codes) -> None:
            nonlocal missing
            missing -= 1
            told.update(codes)
            if missing:
                return
            again = self._find_again(told, markers)
            if again:
                self._scheduler.call_later(RETRY_MS, self._write, markers, again, is_current, done)
            elif again is not None:
                done()

        if not by_leader:
            done()
        for leader, led in by_leader.items():
            if leader == self._broker.node_id:
                self._write_here(marker, led, settled)
            elif leader < 0:
                settled(dict.fromkeys(led, ErrorCode.LEADER_NOT_AVAILABLE))
            else:
                self._remote.write(leader, marker, led, settled)

    def _by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Sort partitions by their leaders. Those that were deleted need no marker."""
        by_leader: dict[int, list[TopicPartition]] = {}
        # In order, since a set has another one in each process: a simulation could not be repeated.
        for one in sorted(partitions):
            topic = self._broker.image.topics.find(one.topic)
            record = None if topic is None else topic.partitions.get(one.partition)
            if record is not None:
                by_leader.setdefault(record.leader, []).append(one)
        return by_leader

    def _find_again(self, told: Codes, markers: Markers) -> list[TopicPartition] | None:
        """Return the partitions that still need their marker. None: one of them never takes it."""
        again: list[TopicPartition] = []
        is_refused = False
        for one, code in told.items():
            if code in _FOR_GOOD:
                _lines.warn(
                    "a partition refused a transaction marker permanently",
                    f"{one}, transactional id {markers.transactional_id!r}: {code.name}",
                )
                is_refused = True
            elif code is not ErrorCode.NONE:
                _lines.warn("a transaction marker has to be sent again", f"{one}: {code.name}")
                again.append(one)
        return None if is_refused else again

    def _write_here(
        self, marker: Marker, partitions: Iterable[TopicPartition], settled: Callable[[Codes], None]
    ) -> None:
        """Write a marker to partitions that this node leads, and tell what became of it."""
        codes: dict[TopicPartition, ErrorCode] = {}
        written: list[WrittenMarker] = []
        for one in partitions:
            result = append_marker(self._broker, one, marker)
            if isinstance(result, WrittenMarker):
                written.append(result)
            else:
                codes[one] = result
                if result in _FOR_GOOD:
                    break

        def committed(failed: list[WrittenMarker]) -> None:
            for one in failed:
                where = TopicPartition(one.partition.topic, one.partition.index)
                codes[where] = ErrorCode.KAFKA_STORAGE_ERROR
            settled(codes)

        # Also of those before a refusal: a group's shard holds answers back until its marker is on disk.
        when_markers_committed(written, committed)
