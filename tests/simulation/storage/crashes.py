"""One seed of the crash simulation: a random life of a log directory, with crashes, checked all along.

A life is a few runs of a process. Each run does random operations to the logs and ends in one of four ways:
a clean stop, a kill, a power cut between two operations, or one in the middle of an operation. The next run
may lose power while it starts. After every start the logs are held against the truth, and started once more:
a second start has to find what the first one found. In the end a file rots while nobody looks (`bit_rot`).
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from tests.simulation.storage.batches import SEQUENCES, Record, make_batch, make_marker
from tests.simulation.storage.bit_rot import let_rot
from tests.simulation.storage.clients import (
    PRODUCERS,
    make_next_batch,
    make_next_marker,
    make_plain_batch,
    make_records,
)
from tests.simulation.storage.world import Partition, World

from ottla.model.ids import ProducerId
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.testing.simulated_disk import PowerCut
from ottla.wire.error_code import ErrorCode
from ottla.world.disk import Reason

_EXPIRATION_MS = 5_000


def run_seed(seed: int) -> World:
    """Live one life. Raises `AssertionError` if an invariant is broken."""
    rng = Random(seed)
    world = World(rng, _make_config(rng), partitions=rng.choice((1, 1, 2)))
    for _ in range(rng.choice((1, 2, 3))):
        _run_process(world, rng)
    _let_rot(world, rng)
    return world


def _let_rot(world: World, rng: Random) -> None:
    """Run once more, stop in some way, damage a file at rest, and see what a start makes of it."""
    end = rng.choice(("clean", "kill", "power cut"))
    try:
        for _ in range(rng.randint(5, 40)):
            _operate(world, rng)
        if end == "clean":
            world.close()
    except PowerCut:
        end = "power cut"
    except LogDirectoryOffline:
        pass
    if not world.directory.is_offline:
        world.disk.heal()
        let_rot(world, rng, end)


def _make_config(rng: Random) -> LogConfig:
    is_compacted = rng.random() < 0.4
    return LogConfig(
        is_compacted=is_compacted,
        is_deleted=not is_compacted or rng.random() < 0.5,
        delete_retention_ms=rng.choice((0, 0, 500)),
        segment_bytes=5_000 if is_compacted else rng.choice((5_000, 12_000, 100_000)),
        segment_ms=rng.choice((500, 10_000)) if is_compacted else rng.choice((500, 10_000, 10_000)),
        segment_index_bytes=rng.choice((48, 10 << 20, 10 << 20)),
        index_interval_bytes=rng.choice((0, 150, 600, 4096)),
        retention_bytes=rng.choice((-1, 10_000)),
        retention_ms=rng.choice((1_000, 100_000)),
        producer_id_expiration_ms=_EXPIRATION_MS,
        verifies_transactions=False,
    )


def _run_process(world: World, rng: Random) -> None:
    """Do some operations, end in some way, and start again."""
    end = rng.choice(("clean", "kill", "power cut", "in an operation", "in an operation"))
    if end == "in an operation":
        world.disk.cut_power_after(rng.randint(1, 150))
    try:
        for _ in range(rng.randint(5, 60 if world.config.is_compacted else 40)):
            _operate(world, rng)
        if end == "clean":
            world.close()
    except PowerCut:
        end = "power cut"
    except LogDirectoryOffline:
        pass
    if world.directory.is_offline:
        # The disk failed. What could not be synced is still in the cache of the kernel, which takes it for
        # safe: only with the machine does that go away. So a broker alone is not to be started again.
        end = "offline"
    world.disk.heal()
    if end in ("clean", "kill"):
        world.kill()
    if end != "kill" and (end != "clean" or rng.random() < 0.5):
        world.cut_power()
    _start_again(world, rng, is_whole=end in ("clean", "kill"), is_durable=end != "kill")


def _start_again(world: World, rng: Random, *, is_whole: bool, is_durable: bool) -> None:
    while rng.random() < 0.15:
        # Power may go while it starts. What a clean stop has promised is not undone by that.
        world.disk.cut_power_after(rng.randint(1, 15))
        with suppress(PowerCut):
            world.open()
        world.cut_power()
        is_whole, is_durable = is_whole and is_durable, True
    world.open()
    world.judge(is_whole=is_whole)
    if rng.random() < 0.3:
        # A second start finds what the first one found. What a kill has left is not durable, however.
        if rng.random() < 0.5:
            world.kill()
            world.open()
            world.judge(is_whole=True)
        else:
            world.cut_power()
            world.open()
            world.judge(is_whole=is_durable)


class Operation(NamedTuple):
    """Something that may happen to a log, and how often it does."""

    weight: int
    do: Callable[[World, Partition, Random], None]


def _append_plain(world: World, partition: Partition, rng: Random) -> None:
    world.append(partition, make_plain_batch(rng, world.now_ms))


def _append_next(world: World, partition: Partition, rng: Random) -> None:
    producer_id = ProducerId(rng.randint(1, PRODUCERS))
    known = partition.log.producer_state.producers.get(producer_id)
    world.append(partition, make_next_batch(rng, producer_id, known, world.now_ms, rng.random() < 0.5))


def _repeat(world: World, partition: Partition, rng: Random) -> None:
    """Send a batch of the window again, as after a lost answer."""
    known = [
        (producer_id, producer)
        for producer_id, producer in sorted(partition.log.producer_state.producers.items())
        if producer.batches
    ]
    if not known:
        return
    producer_id, producer = rng.choice(known)
    last_sequence, last_offset, delta, _ = rng.choice(producer.batches)
    original = next((b for b in partition.truth.history if b.last_offset == last_offset), None)
    sequences = [batch[0] for batch in producer.batches]
    next_sequence = (producer.last_sequence + 1) % SEQUENCES
    is_next = next_sequence in (last_sequence, (last_sequence - delta) % SEQUENCES)
    if original is None or is_next or sequences.count(last_sequence) > 1:
        # A producer that was forgotten meanwhile may have come to the same sequence again.
        return
    again = bytearray(original.data)
    again[:8] = bytes(8)
    if original.is_transactional and not 0 <= producer.transaction_first_offset <= last_offset:
        # Its transaction has ended: a producer that uses the sequence again sends something else.
        assert _refusal(world, partition, again) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return
    info = world.append(partition, again)
    assert info.is_duplicate, f"a batch of producer {producer_id} was appended twice"
    assert (info.first_offset, info.last_offset) == (last_offset - delta, last_offset), (
        "offsets of a duplicate"
    )


def _refusal(
    world: World, partition: Partition, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT
) -> ErrorCode | None:
    """Return why a batch is refused, or None if it is not."""
    try:
        world.append(partition, batch, origin)
    except AppendError as error:
        return error.error_code
    return None


def _send_wrong(world: World, partition: Partition, rng: Random) -> None:
    """Send what must be refused: an old epoch, or a gap in the sequence."""
    producers = partition.log.producer_state.producers
    known = [number for number, producer in sorted(producers.items()) if producer.batches]
    if not known:
        return
    producer_id = rng.choice(known)
    producer = producers[producer_id]
    last_sequence, _, delta, _ = rng.choice(producer.batches)
    if producer.epoch > 0 and rng.random() < 0.5:
        epoch, code = producer.epoch - 1, ErrorCode.INVALID_PRODUCER_EPOCH
        sequence = (last_sequence - delta) % SEQUENCES
    else:
        epoch, code = producer.epoch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        sequence = (producer.last_sequence + 7) % SEQUENCES
    records = [Record(b"wrong", b"wrong", world.now_ms)] * (delta + 1)
    batch = make_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    assert _refusal(world, partition, batch) is code, (
        f"a wrong batch of producer {producer_id} is not refused"
    )


def _send_old_marker(world: World, partition: Partition, rng: Random) -> None:
    """Send a marker of a coordinator that was replaced."""
    producers = partition.log.producer_state.producers
    known = [number for number, producer in sorted(producers.items()) if producer.coordinator_epoch > 0]
    if not known:
        return
    producer_id = rng.choice(known)
    marker = make_marker(
        is_commit=True,
        producer_id=producer_id,
        producer_epoch=producers[producer_id].epoch + 1,
        coordinator_epoch=producers[producer_id].coordinator_epoch - 1,
        timestamp_ms=world.now_ms,
    )
    code = _refusal(world, partition, marker, AppendOrigin.COORDINATOR)
    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED, "the marker of an old coordinator is not refused"


def _end_transaction(world: World, partition: Partition, rng: Random) -> None:
    open_ones = [
        number
        for number, producer in sorted(partition.truth.replay.producers.items())
        if producer.transaction_first_offset is not None
    ]
    if open_ones:
        version = rng.choice((1, 2, 2))
        marker = make_next_marker(rng, partition.truth, rng.choice(open_ones), world.now_ms, version)
        world.append(partition, marker, AppendOrigin.COORDINATOR, version)


def _follow(world: World, partition: Partition, rng: Random) -> None:
    """Append what a leader would send: some batches at once, with gaps where it has compacted."""
    truth = partition.truth
    offset = truth.end
    batches = bytearray()
    for _ in range(rng.randint(1, 3)):
        if world.config.is_compacted and rng.random() < 0.2:
            offset += rng.randint(1, 3)
        records = make_records(rng, world.now_ms)
        if world.config.is_compacted and rng.random() < 0.2:
            # From before the topic was compacted.
            records = [record._replace(key=None) for record in records]
        batches += make_batch(records, base_offset=offset, leader_epoch=truth.leader_epoch)
        offset += len(records)
    world.append_as_follower(partition, bytes(batches))


def _truncate(world: World, partition: Partition, rng: Random) -> None:
    truth = partition.truth
    near = max(truth.start, truth.end - rng.choice((1, 5, 20, 100)))
    world.truncate(partition, rng.randint(near, truth.end))
    # A log departs from its leader's only if there was an election.
    truth.leader_epoch += 1
    world.check(partition)
    if rng.random() < 0.1:
        world.disk.cut_power_after(rng.randint(1, 25))


def _start_anew(world: World, partition: Partition, rng: Random) -> None:
    world.start_anew(partition, partition.truth.end + rng.randint(0, 20))


def _commit(world: World, partition: Partition, rng: Random) -> None:
    world.commit_up_to_end(partition)


def _run_ticket(world: World, partition: Partition, rng: Random) -> None:
    world.run_ticket()


def _flush(world: World, partition: Partition, rng: Random) -> None:
    world.flush(partition)


def _move_high_watermark(world: World, partition: Partition, rng: Random) -> None:
    truth = partition.truth
    ends = [batch.last_offset + 1 for batch in truth.stored if batch.last_offset >= truth.high_watermark]
    if ends:
        world.set_high_watermark(partition, rng.choice(ends))


def _delete_records(world: World, partition: Partition, rng: Random) -> None:
    truth = partition.truth
    world.delete_records(partition, rng.randint(truth.start, truth.high_watermark))


def _retain(world: World, partition: Partition, rng: Random) -> None:
    world.delete_old_segments(partition)


def _remove_files(world: World, partition: Partition, rng: Random) -> None:
    world.run_deletions()


def _start_checkpoint(world: World, partition: Partition, rng: Random) -> None:
    kinds = (CheckpointKind.RECOVERY_POINT, CheckpointKind.LOG_START, CheckpointKind.HIGH_WATERMARK)
    world.start_checkpoint(rng.choice(kinds))
    if rng.random() < 0.7:
        world.finish_checkpoint()


def _finish_checkpoint(world: World, partition: Partition, rng: Random) -> None:
    world.finish_checkpoint()


def _compact(world: World, partition: Partition, rng: Random) -> None:
    if not world.config.is_compacted:
        return
    if rng.random() < 0.5:
        # Only what is decided and synced is compacted.
        while partition.truth.replay.first_open_offset() is not None:
            _end_transaction(world, partition, rng)
        world.flush(partition)
        world.set_high_watermark(partition, partition.truth.end)
    if rng.random() < 0.1:
        world.disk.cut_power_after(rng.randint(1, 25))
    for _ in range(rng.choice((1, 4, 12))):
        world.step_compaction(partition)


def _elect(world: World, partition: Partition, rng: Random) -> None:
    partition.truth.leader_epoch += rng.randint(1, 2)


def _wait(world: World, partition: Partition, rng: Random) -> None:
    world.disk.now_ms += rng.choice((10, 100, 1_000, _EXPIRATION_MS))


def _expire(world: World, partition: Partition, rng: Random) -> None:
    world.disk.now_ms += rng.choice((0, _EXPIRATION_MS))
    world.expire_producers(partition)


def _break_disk(world: World, partition: Partition, rng: Random) -> None:
    match rng.choice(("sync", "sync", "space", "write")):
        case "sync":
            world.disk.fail("sync", Reason.IO_ERROR, skip=rng.randint(0, 2))
        case "space":
            world.disk.capacity_bytes = world.disk.used_bytes() + rng.randint(0, 500)
        case "write":
            world.disk.fail("write", Reason.IO_ERROR, skip=rng.randint(0, 2))


def _check(world: World, partition: Partition, rng: Random) -> None:
    world.check(partition)


OPERATIONS = (
    Operation(20, _append_plain),
    Operation(30, _append_next),
    Operation(8, _end_transaction),
    Operation(5, _repeat),
    Operation(4, _send_wrong),
    Operation(2, _send_old_marker),
    Operation(6, _follow),
    Operation(5, _truncate),
    Operation(1, _start_anew),
    Operation(12, _commit),
    Operation(10, _run_ticket),
    Operation(3, _flush),
    Operation(10, _move_high_watermark),
    Operation(3, _delete_records),
    Operation(3, _retain),
    Operation(3, _remove_files),
    Operation(6, _start_checkpoint),
    Operation(3, _finish_checkpoint),
    Operation(14, _compact),
    Operation(4, _elect),
    Operation(5, _wait),
    Operation(2, _expire),
    Operation(2, _break_disk),
    Operation(4, _check),
)
_DRAWN = tuple(operation for operation in OPERATIONS for _ in range(operation.weight))


def _operate(world: World, rng: Random) -> None:
    rng.choice(_DRAWN).do(world, rng.choice(world.partitions), rng)
