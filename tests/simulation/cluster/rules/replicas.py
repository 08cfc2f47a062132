"""What must hold of each replica by itself: all that a log knows follows from its batches.

A node keeps much beside the batches: the window of each producer, open and aborted transactions, leader
epochs, indexes. It is kept up to date by appends, rebuilt by truncations, and loaded by a start. Here it is
compared with the simple model that judges the storage engine (`tests.simulation.storage.model`).
"""

from collections.abc import Iterator
from random import Random
from struct import Struct
from typing import Final

from tests.simulation.cluster.rules.observing import read_all_unnoticed, read_unnoticed
from tests.simulation.cluster.rules.wrong import Wrong, must
from tests.simulation.storage.batches import CONTROL, HEADER, Batch, read_batches
from tests.simulation.storage.model import (
    Producer,
    Replay,
    first_record_at_or_after,
    last_stable_offset,
)

from ottla.model.ids import Offset, ProducerId
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.testing.power_cut import FileNode
from ottla.testing.simulated_disk import SimulatedDisk

SAMPLES: Final = 8
_INDEX_ENTRY: Final = Struct(">ii")


def check_replica(name: str, log: Log, rng: Random, *, is_fresh: bool = False) -> None:
    """Compare what a log knows with its batches. One that is fresh was neither loaded nor cut."""
    try:
        batches = read_batches(read_all_unnoticed(log))
    except AssertionError as error:
        raise Wrong(f"log: {name}: {error}") from error
    replay = Replay(batches)
    _check_indexes(name, log)
    _check_epochs(name, log, batches)
    _check_look_ups(name, log, batches, rng)
    if log.config.is_compacted:
        _check_kept(name, log, batches)
    else:
        _check_producers(name, log, replay, is_fresh)
        if log.segments[0].base_offset == 0:
            _check_aborted(name, log, replay)


def find_torn(log: Log, disk: SimulatedDisk, synced: int, recovery_point: int) -> str | None:
    """Say what a start has wrongly taken for a part of a log: what is torn, or lies behind a gap.

    Soon after nobody would see it any more: what only one replica has is cut off, or healed. Segments below
    the recovery point are not looked at by a start. A power cut takes nothing from them.
    """
    segments = [segment for segment in log.segments if log.end_of(segment) >= recovery_point]
    expected = segments[0].base_offset if segments else log.log_end_offset
    for segment in segments:
        file = disk.find_node(segment.file.path)
        assert isinstance(file, FileNode), f"{segment.file.path} was loaded, so it is there"
        try:
            batches = read_batches(bytes(file.content[: segment.size]))
        except AssertionError as error:
            return f"{segment.file.path}: {error}"
        # A segment says where it begins also if it is empty.
        for begin, end in [
            (segment.base_offset, segment.base_offset),
            *((batch.base_offset, batch.last_offset + 1) for batch in batches),
        ]:
            if begin != expected and begin > synced and not log.config.is_compacted:
                return f"{segment.file.path}: {begin} comes after {expected - 1}"
            expected = Offset(end)
    return None


def check_stable(name: object, log: Log, *, is_fresh: bool) -> None:
    """What was decided counts only if the decision is on all replicas. A decision that is not is rare."""
    if log.high_watermark == log.log_end_offset or not is_fresh:
        # A start does not know which decisions are on all replicas.
        return
    tail = read_unnoticed(log, log.high_watermark, 1 << 20)
    if not _has_marker(tail):
        return
    if log.log_start_offset == 0:
        stable = last_stable_offset(Replay(read_batches(read_all_unnoticed(log))), log.high_watermark)
        must(
            log.last_stable_offset <= stable,
            f"stable: {name}: {log.last_stable_offset} counts as stable, but only {stable} is",
        )


def _has_marker(data: bytes) -> bool:
    position = 0
    while position < len(data):
        _, length, _, _, _, attributes, *_ = HEADER.unpack_from(data, position)
        if attributes & CONTROL:
            return True
        position += 12 + length
    return False


def epochs_with_records(log: Log) -> list[tuple[int, int]]:
    """Return the leader epochs in which something was written, and where each begins."""
    entries = list(log.leader_epochs.entries)
    ends = [*(entry.start_offset for entry in entries[1:]), log.log_end_offset]
    return [
        (entry.epoch, entry.start_offset)
        for entry, end in zip(entries, ends, strict=False)
        if entry.start_offset < end
    ]


def _check_epochs(name: str, log: Log, batches: list[Batch]) -> None:
    for batch in batches:
        if batch.leader_epoch >= 0:
            found = log.leader_epochs.epoch_for(Offset(batch.last_offset))
            must(
                found == batch.leader_epoch,
                f"log: {name}: the batch at {batch.base_offset} is of epoch {batch.leader_epoch}, "
                f"but is said to be of {found}",
            )


def _check_indexes(name: str, log: Log) -> None:
    """An entry of the offset index has the last offset of the batch that it points to.

    A look-up that finds another one there makes the index again, so nobody else would notice.
    """
    for segment in log.segments:
        entries = bytes(segment.saved_indexes().offsets.entries) if segment.offset_bytes else b""
        if segment.unsaved_offsets is not None:
            entries += segment.unsaved_offsets.entries
        ends = dict(_ends_of_batches(segment.file.read(0, segment.size)))
        for offset, position in _INDEX_ENTRY.iter_unpack(entries):
            must(
                ends.get(position) == segment.base_offset + offset,
                f"log: {name}: the index of {segment.file.path} says that {segment.base_offset + offset} "
                f"ends the batch at {position}, but that is {ends.get(position)}",
            )


def _ends_of_batches(data: bytes) -> Iterator[tuple[int, int]]:
    """Give where each batch begins, and its last offset."""
    position = 0
    while position < len(data):
        base_offset, length, _, _, _, _, delta, *_ = HEADER.unpack_from(data, position)
        yield position, base_offset + delta
        position += 12 + length


def _check_look_ups(name: str, log: Log, batches: list[Batch], rng: Random) -> None:
    if not batches:
        return
    for _ in range(SAMPLES):
        offset = rng.randrange(log.log_start_offset, log.log_end_offset)
        if rng.random() < 0.8:
            # Entries of the index are of the last offsets of batches.
            offset = max(rng.choice(batches).last_offset, log.log_start_offset)
        # A compacted log may end in a gap: there it was cut.
        expected = next((batch.data for batch in batches if batch.last_offset >= offset), b"")
        found = read_unnoticed(log, offset, 1)
        must(found == expected, f"log: {name}: a read at {offset} gives another batch")
        timestamp_ms = rng.choice(batches).max_timestamp + rng.randint(-1, 1)
        first = first_record_at_or_after(batches, timestamp_ms, log.log_start_offset)
        told = log.offset_for_timestamp(timestamp_ms, ReadLimit.LOG_END)
        must(
            (told and told[:2]) == first,
            f"log: {name}: the first record at or after {timestamp_ms} is {first}, but is said to be {told}",
        )


def check_cut(name: str, log: Log, rng: Random) -> None:
    """Compare what a log knows that was just cut with the batches that are left."""
    beyond = [entry for entry in log.leader_epochs.entries if entry.start_offset >= log.log_end_offset > 0]
    must(not beyond, f"log: {name} ends at {log.log_end_offset}, but knows epochs {beyond}")
    check_replica(name, log, rng)


def _check_producers(name: str, log: Log, replay: Replay, is_fresh: bool) -> None:
    live = log.producer_state.producers
    for producer_id, expected in replay.producers.items():
        found = live.get(ProducerId(producer_id))
        must(found is not None, f"log: {name}: producer {producer_id} is forgotten")
        assert found is not None
        first = None if found.transaction_first_offset < 0 else found.transaction_first_offset
        window = [(last, offset) for last, offset, *_ in found.batches]
        known = (found.epoch, first, window)
        if is_fresh and log.log_start_offset == 0:
            must(
                len(window) == len(expected.window),
                f"log: {name}: of producer {producer_id} {expected.window} are the last batches, but only "
                f"{window} are known",
            )
        must(
            found.epoch == expected.epoch
            and _is_open_at(log, expected, first)
            and _is_end(window, expected, log.log_start_offset),
            f"log: {name}: producer {producer_id} is {expected}, but is said to be {known}",
        )


def _check_kept(name: str, log: Log, batches: list[Batch]) -> None:
    """Compaction keeps the last batch of each producer, and of each round, empty if need be.

    A start has to know the producers. And if nothing is written after a round, the log ends with it.
    """
    active = log.segments[-1].base_offset
    before = [batch.last_offset + 1 for batch in batches if batch.base_offset < active]
    must(
        not before or log.truncations > 0 or before[-1] == active,
        f"log: {name}: the batch before {active} is gone, and with it where the log ends",
    )
    kept = {(batch.producer_id, batch.last_sequence, batch.last_offset) for batch in batches}
    for producer_id, producer in log.producer_state.producers.items():
        if producer.batches and producer.last_offset >= log.log_start_offset:
            last = (producer_id, producer.last_sequence, producer.last_offset)
            must(last in kept, f"log: {name}: the last batch of producer {producer_id} is gone: {last}")


def _is_open_at(log: Log, expected: Producer, first: int | None) -> bool:
    """Say whether a transaction began where it should. Of what was deleted, more may be known."""
    return first == expected.transaction_first_offset or (first is not None and first < log.log_start_offset)


def _is_end(window: list[tuple[int, int]], expected: Producer, start: int) -> bool:
    """Say whether the batches that are known are the last ones. A start knows fewer than five."""
    full = [(one.last_sequence, one.last_offset) for one in expected.window]
    if not full or len(window) > len(full):
        # Batches before these were deleted.
        more = len(window) - len(full)
        return window[more:] == full and all(last_offset < start for _, last_offset in window[:more])
    return bool(window) and window == full[len(full) - len(window) :]


def _check_aborted(name: str, log: Log, replay: Replay) -> None:
    expected = [ended[:3] for ended in replay.ended if ended.is_aborted]
    found = [tuple(entry)[:3] for segment in log.segments for entry in segment.aborted()]
    must(found == expected, f"log: {name}: aborted transactions are {expected}, but are said to be {found}")
