"""Whatever is done to a log, in whatever order, it is what the simple model says.

Hypothesis chooses what is done and makes failures small. The world, the model and the checks are those of the
crash simulation; here every rule has arguments of its own, everything is checked after every step, and every
offset and timestamp is looked up.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.simulation.storage.batches import (
    SEQUENCES,
    TRANSACTIONAL,
    Batch,
    Record,
    make_batch,
    make_marker,
)
from tests.simulation.storage.checks import check_all
from tests.simulation.storage.model import first_record_at_or_after
from tests.simulation.storage.truth import Truth
from tests.simulation.storage.world import Partition, World

from ottla.model.ids import Offset, ProducerId
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.storage.read import ReadLimit
from ottla.storage.timestamps import find_offset_for_timestamp
from ottla.wire.error_code import ErrorCode

EXPIRATION_MS = 1_000

keys = st.sampled_from([b"a", b"b", b"c"])
values = st.one_of(st.none(), st.binary(max_size=20), st.integers(100, 700).map(bytes))
records = st.lists(st.tuples(keys, values, st.integers(-30, 30)), min_size=1, max_size=4)
producer_ids = st.integers(1, 3)
shares = st.floats(0, 1)
configs = st.builds(
    LogConfig,
    segment_bytes=st.sampled_from([3_500, 8_000]),
    segment_ms=st.sampled_from([50, 100_000]),
    segment_index_bytes=st.sampled_from([48, 10 << 20]),
    index_interval_bytes=st.sampled_from([0, 200, 4096]),
    is_compacted=st.booleans(),
    retention_ms=st.sampled_from([200, 100_000]),
    retention_bytes=st.sampled_from([-1, 5_000]),
    delete_retention_ms=st.just(0),
    producer_id_expiration_ms=st.just(EXPIRATION_MS),
    verifies_transactions=st.just(False),
)


class LogMachine(RuleBasedStateMachine):
    """One log, in its world."""

    world: World
    partition: Partition

    @initialize(config=configs)
    def start(self, config: LogConfig) -> None:
        self.world = World(Random(0), config)
        self.partition = self.world.partitions[0]

    @property
    def truth(self) -> Truth:
        return self.partition.truth

    def _records(self, drawn: list[tuple[bytes, bytes | None, int]]) -> list[Record]:
        return [Record(key, value, self.world.now_ms + shift) for key, value, shift in drawn]

    # Appending.

    @rule(drawn=records)
    def append(self, drawn: list[tuple[bytes, bytes | None, int]]) -> None:
        self.world.append(self.partition, make_batch(self._records(drawn)))

    @rule(
        sent=st.lists(records, min_size=1, max_size=4),
        number=producer_ids,
        transactional=st.booleans(),
        bumps=st.booleans(),
        near=st.booleans(),
    )
    def append_idempotent(
        self,
        sent: list[list[tuple[bytes, bytes | None, int]]],
        number: int,
        transactional: bool,
        bumps: bool,
        near: bool,
    ) -> None:
        known = self.partition.log.producer_state.producers.get(ProducerId(number))
        epoch, sequence = 0, SEQUENCES - 2 if near else 0
        if known is not None:
            epoch = known.epoch
            sequence = (known.last_sequence + 1) % SEQUENCES if known.batches else 0
            if known.has_open_transaction:
                transactional = True
            elif bumps:
                epoch, sequence = epoch + 1, 0
        for drawn in sent:
            batch = make_batch(
                self._records(drawn),
                producer_id=number,
                producer_epoch=epoch,
                base_sequence=sequence,
                attributes=TRANSACTIONAL if transactional else 0,
            )
            self.world.append(self.partition, batch)
            sequence = (sequence + len(drawn)) % SEQUENCES

    def _open_transactions(self) -> list[int]:
        producers = self.truth.replay.producers
        return sorted(n for n, known in producers.items() if known.transaction_first_offset is not None)

    @precondition(lambda self: self._open_transactions())
    @rule(choice=shares, is_commit=st.booleans(), version=st.sampled_from([1, 2]))
    def end_transaction(self, choice: float, is_commit: bool, version: int) -> None:
        numbers = self._open_transactions()
        number = numbers[int(choice * (len(numbers) - 1))]
        producer = self.truth.replay.producers[number]
        marker = make_marker(
            is_commit=is_commit,
            producer_id=number,
            producer_epoch=producer.epoch + (version == 2),
            coordinator_epoch=max(0, producer.coordinator_epoch),
            timestamp_ms=self.world.now_ms,
        )
        self.world.append(self.partition, marker, AppendOrigin.COORDINATOR, version)

    @rule(number=producer_ids, back=st.integers(0, 4))
    def repeat(self, number: int, back: int) -> None:
        """A batch of the window that is sent again is a duplicate of itself, until its transaction ends."""
        known = self.partition.log.producer_state.producers.get(ProducerId(number))
        if known is None or len(known.batches) <= back:
            return
        last_sequence, last_offset, delta, _ = known.batches[-1 - back]
        original = next((b for b in self.truth.history if b.last_offset == last_offset), None)
        sequences = [note[0] for note in known.batches] + [(known.last_sequence + 1) % SEQUENCES]
        if original is None or sequences.count(last_sequence) > 1:
            return
        again = bytearray(original.data)
        again[:8] = bytes(8)
        first_offset = self.truth.replay.producers[number].transaction_first_offset
        if original.is_transactional and (first_offset is None or last_offset < first_offset):
            with pytest.raises(AppendError) as refused:
                self.world.append(self.partition, again)
            assert refused.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            return
        info = self.world.append(self.partition, again)
        assert (info.is_duplicate, info.first_offset, info.last_offset) == (
            True,
            last_offset - delta,
            last_offset,
        )

    @rule(batches=st.lists(records, min_size=1, max_size=3), gap=st.integers(0, 3))
    def follow(self, batches: list[list[tuple[bytes, bytes | None, int]]], gap: int) -> None:
        offset = self.truth.end + (gap if self.world.config.is_compacted else 0)
        data = bytearray()
        for drawn in batches:
            data += make_batch(self._records(drawn), base_offset=offset, leader_epoch=self.truth.leader_epoch)
            offset += len(drawn)
        self.world.append_as_follower(self.partition, bytes(data))

    @rule(more=st.integers(1, 2))
    def elect(self, more: int) -> None:
        self.truth.leader_epoch += more

    # Offsets.

    @rule(share=shares)
    def move_high_watermark(self, share: float) -> None:
        ends = [self.truth.high_watermark]
        ends += [b.last_offset + 1 for b in self.truth.stored if b.last_offset >= self.truth.high_watermark]
        self.world.set_high_watermark(self.partition, ends[int(share * (len(ends) - 1))])

    @rule(share=shares)
    def delete_records(self, share: float) -> None:
        span = self.truth.high_watermark - self.truth.start
        self.world.delete_records(self.partition, self.truth.start + int(share * span))

    @rule(share=shares)
    def truncate(self, share: float) -> None:
        span = self.truth.end - self.truth.start
        self.world.truncate(self.partition, self.truth.start + int(share * span))
        self.truth.leader_epoch += 1

    @rule(ahead=st.integers(0, 10))
    def start_anew(self, ahead: int) -> None:
        self.world.start_anew(self.partition, self.truth.end + ahead)

    # Housekeeping.

    @rule()
    def flush(self) -> None:
        self.world.flush(self.partition)

    @rule(kind=st.sampled_from(list(CheckpointKind)[:3]))
    def checkpoint(self, kind: CheckpointKind) -> None:
        self.world.start_checkpoint(kind)
        self.world.finish_checkpoint()

    @rule()
    def retain(self) -> None:
        self.world.delete_old_segments(self.partition)
        self.world.run_deletions()

    @precondition(lambda self: self.world.config.is_compacted)
    @rule(steps=st.integers(1, 20))
    def compact(self, steps: int) -> None:
        for _ in range(steps):
            self.world.step_compaction(self.partition)

    @rule(pause_ms=st.sampled_from([1, 100, EXPIRATION_MS]))
    def wait(self, pause_ms: int) -> None:
        self.world.disk.now_ms += pause_ms

    @rule()
    def expire(self) -> None:
        self.world.expire_producers(self.partition)

    # Stopping and starting.

    @rule()
    def stop_cleanly(self) -> None:
        self.world.close()
        self.world.kill()
        self.world.open()
        self.world.judge(is_whole=True)

    @rule()
    def kill(self) -> None:
        self.world.kill()
        self.world.open()
        self.world.judge(is_whole=True)

    @rule(seed=st.integers(0, 2**32))
    def cut_power(self, seed: int) -> None:
        self.world.rng = Random(seed)
        self.world.cut_power()
        self.world.open()
        self.world.judge(is_whole=False)

    # What always holds.

    @invariant()
    def is_its_model(self) -> None:
        check_all(self.partition.log, self.truth, Random(0), samples=2)

    @invariant()
    def every_look_up_is_a_linear_scan(self) -> None:
        log, visible = self.partition.log, self.truth.visible()
        for offset in range(self.truth.start, self.truth.end + 1):
            expected = next((b.data for b in visible if b.last_offset >= offset), b"")
            assert log.read(Offset(offset), 1, ReadLimit.LOG_END).read() == expected, f"read at {offset}"
        for timestamp_ms in _timestamps(visible):
            found = find_offset_for_timestamp(log, timestamp_ms, ReadLimit.LOG_END)
            wanted = first_record_at_or_after(visible, timestamp_ms, self.truth.start)
            assert (found and found[:2]) == wanted, f"first record at or after {timestamp_ms}"


def _timestamps(batches: list[Batch]) -> list[int]:
    stamps = {batch.max_timestamp for batch in batches}
    return sorted(stamps | {stamp + 1 for stamp in stamps})


def test_a_log_is_its_model() -> None:
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
