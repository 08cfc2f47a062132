"""The invariants of a log, each as a named check against the truth."""

from collections.abc import Sequence
from random import Random

from tests.simulation.storage.batches import Batch, read_batches, read_records
from tests.simulation.storage.model import (
    Producer,
    Replay,
    Transaction,
    end_offset_for_epoch,
    epochs_from,
    first_record_at_or_after,
    latest_values,
)
from tests.simulation.storage.truth import State, Truth

from ottla.model.ids import LeaderEpoch, Offset, ProducerId
from ottla.storage.log import Log
from ottla.storage.producers.producer_state import Producer as LiveProducer
from ottla.storage.read import ReadLimit
from ottla.storage.timestamps import find_max_timestamp, find_offset_for_timestamp

_PLENTY = 1 << 30


def read_log(log: Log) -> bytes:
    """Return the bytes of all batches from the log start to the log end, as a replica would fetch them."""
    offset = log.log_start_offset
    pieces: list[bytes] = []
    while offset < log.log_end_offset:
        piece = log.read(offset, _PLENTY, ReadLimit.LOG_END).read()
        if not piece:
            break
        pieces.append(piece)
        last = read_batches(piece)[-1].last_offset
        assert last >= offset, f"a read at {offset} gave only older batches"
        offset = Offset(last + 1)
    return b"".join(pieces)


def check_all(log: Log, truth: Truth, rng: Random, samples: int = 6) -> None:
    """Check every invariant of a log in use."""
    check_offsets(log, truth)
    check_reads(log, truth)
    check_limits(log, truth)
    check_look_ups(log, truth, rng, samples)
    check_producers(log, truth)
    check_epochs(log, truth)
    check_aborted(log, truth)


def check_offsets(log: Log, truth: Truth) -> None:
    """Log start, last stable offset, high watermark and log end are what they should be, and in order."""
    assert log.log_end_offset == truth.end, f"log end {log.log_end_offset}, expected {truth.end}"
    assert log.log_start_offset == truth.start, f"log start {log.log_start_offset}, expected {truth.start}"
    assert log.high_watermark == truth.high_watermark, "high watermark"
    assert 0 <= log.recovery_point <= log.log_end_offset, "recovery point beyond the log"
    stable = log.last_stable_offset
    expected = truth.last_stable_offset
    if truth.is_rebuilt:
        # Which of the ended transactions were not below the high watermark is not kept over a restart.
        first_open = truth.replay.first_open_offset()
        upper = truth.high_watermark if first_open is None else min(first_open, truth.high_watermark)
        if first_open is not None and first_open < truth.start:
            # That it was open may have been in a file that is gone.
            upper = truth.high_watermark
        assert expected <= stable <= max(upper, truth.start), f"last stable offset {stable}, from {expected}"
    else:
        assert stable == expected, f"last stable offset {stable}, expected {expected}"
    assert log.log_start_offset <= stable <= log.high_watermark <= log.log_end_offset, "order of offsets"


def check_reads(log: Log, truth: Truth) -> None:
    """A replica reads what is stored, to the byte."""
    data = read_log(log)
    if data != b"".join([batch.data for batch in truth.visible()]):
        found, expected = _outline(read_batches(data)), _outline(truth.visible())
        raise AssertionError(f"reads give {found}, expected {expected}")


def check_limits(log: Log, truth: Truth) -> None:
    """A consumer reads nothing that is not on every replica, and a committed one nothing undecided."""
    for limit, end in (
        (ReadLimit.HIGH_WATERMARK, log.high_watermark),
        (ReadLimit.LAST_STABLE, log.last_stable_offset),
    ):
        last = next((batch for batch in reversed(truth.visible()) if batch.last_offset < end), None)
        offset = log.log_start_offset if last is None else Offset(max(last.base_offset, log.log_start_offset))
        found = log.read(offset, _PLENTY, limit).read()
        assert found == (b"" if last is None else last.data), (
            f"read at {offset} up to the {limit.value}, {end}"
        )


def check_look_ups(log: Log, truth: Truth, rng: Random, samples: int) -> None:
    """Whatever offset or timestamp is asked for, the indexes lead where a linear scan leads."""
    visible = truth.visible()
    for _ in range(samples):
        _check_offset_look_up(log, rng.randint(truth.start, truth.end), visible)
    if not visible:
        return
    timestamps = [batch.max_timestamp for batch in visible]
    for _ in range(samples):
        timestamp_ms = rng.choice(timestamps) + rng.randint(-1, 1)
        expected = first_record_at_or_after(visible, timestamp_ms, truth.start)
        found = find_offset_for_timestamp(log, timestamp_ms, ReadLimit.LOG_END)
        assert (found and found[:2]) == expected, f"first record at or after {timestamp_ms}"
    # A segment that reaches below the log start may hold a larger timestamp, and an empty batch may, too.
    if log.segments[0].base_offset == log.log_start_offset and not truth.is_compacted:
        latest = find_max_timestamp(log)
        assert (latest and latest.timestamp_ms) == max(timestamps), "max timestamp"


def _check_offset_look_up(log: Log, offset: int, visible: list[Batch]) -> None:
    expected = next((batch for batch in visible if batch.last_offset >= offset), None)
    result = log.read(Offset(offset), 1, ReadLimit.LOG_END)
    if expected is None:
        assert result.length == 0, f"read at {offset}"
    else:
        assert result.read() == expected.data, f"read at {offset}"


def check_producers(log: Log, truth: Truth) -> None:
    """The state of the producers is that of a full replay, as far as a restart does not shorten it."""
    live = log.producer_state.producers
    for producer_id, expected in truth.replay.producers.items():
        found = live.get(ProducerId(producer_id))
        if found is None:
            # A rebuilt state knows only what a snapshot or a batch that is still there tells.
            is_deleted = truth.is_rebuilt and expected.last_seen_offset < truth.start
            is_expired = producer_id in truth.expired and expected.transaction_first_offset is None
            assert is_deleted or is_expired, f"producer {producer_id} is forgotten"
        else:
            _check_producer(producer_id, found, expected, truth)
    unknown = live.keys() - truth.producers_ever
    assert not unknown, f"producers {sorted(unknown)} came from nowhere"


def _check_producer(producer_id: int, found: LiveProducer, expected: Producer, truth: Truth) -> None:
    name = f"producer {producer_id}"
    first = None if found.transaction_first_offset < 0 else found.transaction_first_offset
    expected_first = expected.transaction_first_offset
    is_deleted = truth.is_rebuilt and expected_first is not None and expected_first < truth.start
    assert first == expected_first or is_deleted, (
        f"transaction of {name} began at {first}, expected {expected_first}"
    )
    is_shortened = truth.is_rebuilt or producer_id in truth.expired
    if is_shortened and truth.is_compacted and found.epoch < expected.epoch:
        # Compaction took the marker that had raised the epoch.
        return
    assert found.epoch == expected.epoch, f"epoch of {name}"
    if not is_shortened:
        assert found.coordinator_epoch == expected.coordinator_epoch, f"coordinator epoch of {name}"
        assert found.timestamp_ms == expected.timestamp_ms, f"timestamp of {name}"
    window = [(last_sequence, last, last - delta) for last_sequence, last, delta, _ in found.batches]
    full = [(batch.last_sequence, batch.last_offset, batch.base_offset) for batch in expected.window]
    if producer_id in truth.expired and truth.is_compacted:
        # Compaction keeps no batch for the sake of a producer that is forgotten.
        assert set(window) <= set(full), f"window of {name} is {window}, of {full}"
    elif is_shortened:
        assert window == full[len(full) - len(window) :], f"window of {name} is {window}, of {full}"
        # Of batches below the log start a state that is rebuilt may know nothing, even if their marker is
        # still there.
        is_known = any(last_offset >= truth.start for _, last_offset, _ in full)
        assert window or not is_known or producer_id in truth.expired, f"window of {name} is empty"
    else:
        assert window == full, f"window of {name} is {window}, expected {full}"


def check_epochs(log: Log, truth: Truth) -> None:
    """The leader epochs are those of a full replay, and so are the answers that followers get."""
    # Epochs that ended below the log start are forgotten, even if a crash takes the log start back.
    known_from = max(truth.start, truth.start_ever) if truth.is_rebuilt else truth.start
    if known_from >= truth.end:
        return
    entries = epochs_from(
        [(entry.epoch, entry.start_offset) for entry in log.leader_epochs.entries], known_from
    )
    expected = epochs_from(truth.replay.epochs, known_from)
    if truth.is_rebuilt and log.config.is_compacted:
        _check_epochs_of_batches(entries, expected, truth)
        return
    assert entries == expected, f"leader epochs {entries}, expected {expected}"
    oldest = expected[0][0] if expected else 0
    for epoch in (-1, *range(oldest, truth.leader_epoch + 2)):
        answer = tuple(log.end_offset_for_epoch(LeaderEpoch(epoch)))
        assert answer == end_offset_for_epoch(expected, epoch, truth.end), f"end of epoch {epoch}"


def _check_epochs_of_batches(
    entries: list[tuple[int, int]], expected: list[tuple[int, int]], truth: Truth
) -> None:
    """An epoch may begin as late as its first batch that is left, and one with none left may be forgotten."""
    first_left: dict[int, int] = {}
    for batch in truth.visible():
        first_left.setdefault(batch.leader_epoch, batch.base_offset)
    found = dict(entries)
    for epoch, start in expected:
        if epoch in first_left:
            latest = max(start, first_left[epoch])
            assert start <= found.get(epoch, -1) <= latest, f"leader epochs {entries}, expected {expected}"
    unknown = found.keys() - {epoch for epoch, _ in truth.replay.epochs}
    assert not unknown, f"leader epochs {entries}, expected {expected}"


def check_aborted(log: Log, truth: Truth) -> None:
    """What read_committed readers are told to leave out is what the abort markers in the log say."""
    first = log.segments[0].base_offset
    aborted = [ended for ended in truth.replay.ended if ended.is_aborted and ended.last_offset >= first]
    in_files = [tuple(entry) for segment in log.segments for entry in segment.aborted()]
    expected = [ended[:4] for ended in aborted]
    if truth.is_compacted or truth.is_rebuilt:
        # Compaction lets go of a transaction with its last record, and a rebuilt state may not know where
        # a transaction began whose beginning was deleted.
        missing = {ended[2] for ended in expected} - {entry[2] for entry in in_files}
        needed = {ended.last_offset for ended in aborted if _has_data(ended, truth.visible())}
        assert not missing & needed, (
            f"aborted transactions that end at {sorted(missing & needed)} are unknown"
        )
        assert {entry[2] for entry in in_files} <= {ended[2] for ended in expected}, (
            "transactions not aborted"
        )
    else:
        assert in_files == expected, f"aborted transactions {in_files}, expected {expected}"
    _check_committed_reads(log, truth, aborted)


def _check_committed_reads(log: Log, truth: Truth, aborted: Sequence[Transaction]) -> None:
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        result = log.read(offset, _PLENTY, ReadLimit.LAST_STABLE)
        batches = read_batches(result.read())
        if not batches:
            # A high watermark from before a truncation may lie within a batch.
            break
        told = {ranged.producer_id: ranged.first_offset for ranged in reversed(result.aborted or ())}
        for ended in aborted:
            if _has_data(ended, batches):
                first = told.get(ProducerId(ended.producer_id))
                assert first is not None, f"nobody is told that {ended} is aborted"
        offset = Offset(batches[-1].last_offset + 1)


def _has_data(ended: Transaction, batches: Sequence[Batch]) -> bool:
    return any(
        batch.producer_id == ended.producer_id
        and batch.is_transactional
        and not batch.is_control
        and batch.count
        and ended.first_offset <= batch.base_offset < ended.last_offset
        for batch in batches
    )


def check_found(log: Log, truth: Truth, found: Sequence[Batch], *, is_whole: bool) -> State:
    """What a start has found is what was promised, and nothing that never was. Returns what it is."""
    assert log.topic_id is not None, "the id of the topic is lost"
    assert log.log_end_offset >= truth.synced_end, (
        f"the log was synced up to {truth.synced_end} and now ends at {log.log_end_offset}"
    )
    start = log.log_start_offset
    assert start <= truth.start_max, f"log start {start}"
    assert log.high_watermark <= max(truth.high_watermark_ever, start), "a high watermark that never was"
    states = [truth.state, *truth.staged]
    if not is_whole:
        states += truth.others
    # Of what was deleted, some may have come back, and some not.
    kept_from = max(start, truth.start)
    deleted = {batch.data for batch in found if batch.last_offset < kept_from}
    wanted = [batch.data for batch in found if batch.last_offset >= kept_from]
    for state in states:
        had = [batch.data for batch in state.stored if batch.last_offset >= kept_from]
        is_same = (wanted == had) if is_whole else (wanted == had[: len(wanted)])
        if is_same and deleted <= {batch.data for batch in state.stored}:
            return state
    raise AssertionError(
        f"the log never was {_outline(found)}, but "
        + " or ".join(str(_outline(state.stored)) for state in states)
    )


def check_compacted(
    log: Log, truth: Truth, before: Sequence[Batch], after: Sequence[Batch], round_end: int
) -> None:
    """Compaction invents nothing, keeps the newest value of every key, and forgets no active producer.

    The last batch of a round, which ends at `round_end`, stays: else the end of a follower's log would move.
    """
    had = {record.offset: record for batch in before for record in read_records(batch)}
    for batch in after:
        for record in read_records(batch):
            assert had.get(record.offset) == record, f"compaction invented a record at {record.offset}"
    ends = [batch.last_offset for batch in after]
    assert ends == sorted(set(ends)), "compaction mixed up offsets"
    assert ends[-1] == before[-1].last_offset, "compaction moved the log end"
    if any(batch.last_offset + 1 == round_end for batch in before):
        assert round_end - 1 in ends, "compaction moved the end of what it cleaned"
    replay = Replay(truth.history)
    newest, kept = latest_values(before, replay, truth.start), latest_values(after, replay, truth.start)
    for key, (offset, value) in newest.items():
        if value is not None:
            assert kept.get(key) == (offset, value), f"compaction lost the value of {key!r} at {offset}"
        else:
            assert kept.get(key, (offset, None)) == (offset, None), f"compaction brought back {key!r}"
    left = {batch.last_offset for batch in before}
    sequences = {batch.last_offset: batch.last_sequence for batch in after if not batch.is_control}
    for producer_id, producer in log.producer_state.producers.items():
        for last_sequence, last_offset, _, _ in producer.batches:
            # A batch that an older snapshot knows may have gone before, when nobody did.
            if last_offset in left and last_offset >= truth.start:
                assert sequences.get(last_offset) == last_sequence, (
                    f"compaction lost sequence {last_sequence} of producer {producer_id}"
                )


def _outline(batches: Sequence[Batch]) -> list[tuple[int, int, int]]:
    return [(batch.base_offset, batch.last_offset, batch.leader_epoch) for batch in batches]
