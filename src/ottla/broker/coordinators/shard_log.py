"""The log of a shard: a partition of an internal topic, written by its coordinator and read back at start.

What is decided in one turn of the event loop is held back until the turn ends, and then becomes one batch:
one checksum, one write, one sync for all. The shard gets the offsets at once, which are known because
nobody else writes to the partition; who writes a marker has what is held back written out first. Whatever can
refuse a batch is asked before it is held back. If the write fails all the same, the state is ahead of what is
written, so the shard stops serving. It is loaded again, unless its directory is broken.

A shard's answers wait until their records are committed. However many wait, the log is asked to report one
offset at a time: what comes meanwhile shares the next.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.decision import ProducerIdentity, Records
from ottla.coordination.runtime.shard import AnyShard, CannotAppend, LoggedBatch, ShardStatus
from ottla.model.ids import Offset
from ottla.records.attributes import CONTROL_BIT, TRANSACTIONAL_BIT, Codec
from ottla.records.batch import BatchHeader, BatchView, iter_batches
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.builder import build_numbered_batch
from ottla.records.codec import encode_fields
from ottla.records.control import decode_end_txn_marker, find_control_record
from ottla.records.errors import CorruptBatch, RecordsError
from ottla.runtime.log_lines import RepeatedLines
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.errors import AppendError, DamagedRecords, LeadershipLost, LogDirectoryOffline
from ottla.storage.read import ReadLimit
from ottla.storage.syncing.committed import committed_offset
from ottla.wire.coordinator_records.framing import CoordinatorRecord, CoordinatorRecords
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import WireError
from ottla.world.clock import Clock

_logger: Final = logging.getLogger("ottla.coordinators")

READ_BYTES: Final = 1 << 20
"""How much is read at once while loading."""

HELD_MIN: Final = 16
"""From this many records on nothing is held back while the disk has nothing to do: in a long turn it works
alongside. A group of 1,000 members settled in 184 ms instead of 194 for it."""

_RECORD_OVERHEAD_BYTES: Final = 32
_BATCH_OVERHEAD_BYTES: Final = 61


class PartitionShardLog:
    """A partition as the shard sees it. Implements the runtime's `ShardLog`."""

    def __init__(
        self,
        partition: Partition,
        kinds: CoordinatorRecords,
        clock: Clock,
        at_end_of_turn: Callable[[Callable[[], None]], object],
        codec: Codec = Codec.NONE,
    ) -> None:
        """`at_end_of_turn` calls what it is given when all requests that have arrived are served."""
        self.partition = partition
        self._kinds = kinds
        self._clock = clock
        self._at_end_of_turn = at_end_of_turn
        self._codec = codec
        self._is_waiting = False
        # The fields of what is decided and not yet appended, with the size it will have at most, and the
        # time of the first: it becomes that of all.
        self._held: list[bytes] = []
        self._held_since_ms = 0
        self._held_bytes = _BATCH_OVERHEAD_BYTES
        self._lines = RepeatedLines(_logger, clock.monotonic_ms)
        # The offset that was read last while loading, and how many records could not be loaded.
        self._read_offset = -1
        self.left_out = 0
        # Set when the shard is made, which needs its log first.
        self.shard: AnyShard
        self.when_refused: Callable[[], object]
        """Called when the shard has failed because a batch was refused at the end of a turn."""

    # Writing

    def append(
        self,
        records: Records,
        producer: ProducerIdentity | None,
        is_atomic: bool,
    ) -> int:
        """Take the records, and have them written and synced soon. Raises `CannotAppend`."""
        partition = self.partition
        if not partition.is_leader:
            raise CannotAppend(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not partition.has_enough_replicas:
            raise CannotAppend(ErrorCode.NOT_ENOUGH_REPLICAS)
        held = self._held
        encoded = self._encode(records) if isinstance(records, tuple) else records.encoded
        size = sum(map(len, encoded)) + _RECORD_OVERHEAD_BYTES * len(encoded)
        config = partition.log.config
        room = min(config.max_message_bytes, config.segment_bytes) - self._held_bytes
        if producer is not None or size > room:
            return self._append_apart(encoded, producer, is_atomic)
        if not held:
            self._at_end_of_turn(self.write_out)
            self._held_since_ms = self._clock.now_ms()
        held += encoded
        self._held_bytes += size
        last_offset: int = partition.log.log_end_offset + len(held) - 1
        if len(held) >= HELD_MIN and not self._is_waiting:
            self._write_out_now()
        return last_offset

    def write_out(self) -> None:
        """Append what is held back. If that fails, the shard is at its end."""
        held = self._held
        if not held:
            return
        self._held, self._held_bytes = [], _BATCH_OVERHEAD_BYTES
        if self.shard.status is not ShardStatus.ACTIVE:
            # It has refused all who wait.
            return
        if not self.partition.is_leader:
            self.shard.fail()
            return
        try:
            self._append_batch(held, self._held_since_ms, None)
        except CannotAppend as error:
            _logger.critical("cannot write to %s, its coordinator stops: %s", self.partition, error)
            self.shard.fail()
            self.when_refused()
        else:
            self._commit()

    def _write_out_now(self) -> None:
        """Append what is held back while somebody appends, who must learn of it if that fails."""
        self.write_out()
        if self.shard.status is not ShardStatus.ACTIVE:
            # What is appended was decided on a state that will never be written.
            raise CannotAppend(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _encode(self, records: tuple[CoordinatorRecord, ...]) -> list[bytes]:
        encode_key, encode_value = self._kinds.encode_key, self._kinds.encode_value
        return [
            encode_fields(encode_key(key), None if value is None else encode_value(value, version))
            for key, value, version in records
        ]

    def _append_apart(
        self, records: Sequence[bytes], producer: ProducerIdentity | None, is_atomic: bool
    ) -> int:
        """Append records at once, in batches of their own: a transaction's, and what is large."""
        self._write_out_now()
        now_ms = self._clock.now_ms()
        last_offset = -1
        for batch in (records,) if is_atomic else self._cut(records):
            last_offset = self._append_batch(batch, now_ms, producer)
        self._commit()
        return last_offset

    def _append_batch(self, records: Sequence[bytes], now_ms: int, producer: ProducerIdentity | None) -> int:
        if producer is None:
            batch = build_numbered_batch(records, now_ms, self._codec)
        else:
            batch = build_numbered_batch(
                records, now_ms, self._codec, producer.producer_id, producer.producer_epoch, True
            )
        try:
            info = self.partition.append(
                memoryview(batch),
                now_ms,
                AppendOrigin.COORDINATOR,
                verification=None if producer is None else producer.proof,
            )
        except AppendError as error:
            self._lines.warn("a partition refused a write of its coordinator", f"{self.partition}: {error}")
            raise CannotAppend(error.error_code) from error
        except LogDirectoryOffline as error:
            raise CannotAppend(ErrorCode.KAFKA_STORAGE_ERROR) from error
        return info.last_offset

    def _cut(self, records: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Make batches that are not too large for the topic."""
        bytes_max = self.partition.log.config.max_message_bytes
        batch: list[bytes] = []
        size = _BATCH_OVERHEAD_BYTES
        for record in records:
            record_size = _RECORD_OVERHEAD_BYTES + len(record)
            if batch and size + record_size > bytes_max:
                yield batch
                batch, size = [], _BATCH_OVERHEAD_BYTES
            batch.append(record)
            size += record_size
        if batch:
            yield batch

    def wait_for_replicas(self) -> None:
        """Hold answers back that depend on what was loaded and is not committed yet.

        The leader before may have acknowledged it, or it may be lost with this node.
        """
        log = self.partition.log
        if log.high_watermark < log.log_end_offset:
            self.shard.committed_offset = log.high_watermark - 1
            self._commit()

    def _commit(self) -> None:
        """Have the shard answer when what it has appended is committed."""
        log = self.partition.log
        if not self._is_waiting:
            self._is_waiting = True
            log.when_committed(log.log_end_offset, self._committed)

    def _committed(self, error: LogDirectoryOffline | LeadershipLost | None) -> None:
        self._is_waiting = False
        log = self.partition.log
        if isinstance(error, LeadershipLost):
            # The metadata that says so has the shard resign as well.
            return
        if error is not None:
            _logger.critical("cannot sync %s, its coordinator stops: %s", self.partition, error)
            self.shard.fail()
            return
        self.shard.commit_up_to(committed_offset(log) - 1)
        if not log.is_committed(log.log_end_offset):
            self._commit()

    # Reading

    def batches(self) -> Iterator[LoggedBatch]:
        """Read everything up to the log end, and leave out what cannot be read.

        Raises an error of its kind if it is not known where the next batch begins.
        """
        log = self.partition.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            data = memoryview(log.read(offset, READ_BYTES, ReadLimit.LOG_END).read())
            read_to = offset
            for batch in iter_batches(data):
                header = batch.header
                if header.last_offset >= offset:
                    read_to = Offset(header.last_offset + 1)
                    self._read_offset = header.base_offset
                    try:
                        opened = self._open(batch, header)
                    except RecordsError as error:
                        self.leave_out(error)
                        opened = LoggedBatch(header.last_offset)
                    yield opened
            if read_to == offset:
                # Compaction took what was left.
                return
            offset = read_to

    def _open(self, batch: BatchView, header: BatchHeader) -> LoggedBatch:
        if not batch.crc_is_valid():
            log = self.partition.log
            if log.when_damaged is not None:
                # Another replica has it. The load begins again when it is healed.
                log.when_damaged(Offset(batch.base_offset))
                raise DamagedRecords(str(log.topic_partition), header.base_offset, header.next_offset)
            raise CorruptBatch(0, f"the checksum of the batch at offset {batch.base_offset} does not match")
        if not header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
            return LoggedBatch(header.last_offset, self._decode(batch, header))
        producer = None
        if header.is_transactional:
            producer = ProducerIdentity(header.producer_id, header.producer_epoch)
        if header.is_control:
            record = find_control_record(batch)
            if record is None or producer is None:
                return LoggedBatch(header.last_offset)
            is_commit = decode_end_txn_marker(record).is_commit
            return LoggedBatch(header.last_offset, producer=producer, committed=is_commit)
        return LoggedBatch(header.last_offset, self._decode(batch, header), producer)

    def _decode(self, batch: BatchView, header: BatchHeader) -> Iterator[CoordinatorRecord]:
        decode = self._kinds.decode
        try:
            for offset, _, key, value, _ in iter_batch_record_tuples(batch, header=header):
                self._read_offset = offset
                try:
                    record = decode(b"" if key is None else key, value)
                except WireError as error:
                    self.leave_out(error)
                    continue
                if isinstance(record, CoordinatorRecord):
                    yield record
                else:
                    self._lines.warn(
                        "skipped a record of an unknown type",
                        f"type {record.record_type} at offset {offset} of {self.partition}",
                    )
        except RecordsError as error:
            # Where the next record begins is not known, so the rest of the batch is left out too.
            self.leave_out(error)

    def leave_out(self, error: Exception) -> None:
        """Tell of the record that was read last: it cannot be replayed."""
        self.left_out += 1
        self._lines.warn(
            "skipped a record that cannot be loaded",
            f"offset {self._read_offset} of {self.partition}: {type(error).__name__}: {error}",
        )


OpenLog = Callable[[Partition], PartitionShardLog]
