"""A round of cleaning: which records and batches stay, and how the batches look that were touched."""

from random import Random

import pytest
from tests.unit.storage.compaction.cleaned_log import (
    DELETE_RETENTION_MS,
    DIRECTORY,
    NOW_MS,
    LogUnderTest,
    aborted,
    data_batch,
    marker,
    producers,
)

from ottla.model.ids import NO_TIMESTAMP
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.errors import CorruptBatch
from ottla.storage.compaction.cleaning import clean
from ottla.storage.compaction.offset_map import ENTRY_BYTES, OffsetMap
from ottla.storage.config import LogConfig
from ottla.storage.errors import OffsetOverflow
from ottla.storage.names import FileKind

CODECS = list(Codec)


def test_the_newest_record_of_each_key_stays() -> None:
    log = LogUnderTest(
        {
            0: [data_batch(0, [("a", "1"), ("b", "1"), ("a", "2")])],
            3: [data_batch(3, [("c", "1"), ("b", "2")])],
        },
        end_offset=5,
    ).clean()
    assert log.survivors == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]
    assert log.outcome is not None
    assert log.outcome == (5, 5, 3)


def test_keys_that_have_not_changed_stay_in_the_clean_part() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [("a", "1"), ("b", "1")])], 2: [data_batch(2, [("b", "2"), ("b", "3")])]},
        end_offset=4,
        first_dirty_offset=2,
    ).clean()
    assert log.survivors == [(0, "a", "1"), (3, "b", "3")]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("seed", range(20))
def test_offsets_decide_as_keys_do(seed: int, codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    batches: list[bytes] = []
    end_offset = 0
    for _ in range(40):
        keys = random.choices([None, *"abcdefghijklmnopqrstuvwxyz"], [1] + [10] * 26, k=random.randint(1, 5))
        pairs = [(key, random.choice(["1", "2", "x" * 300, None])) for key in keys]
        batches.append(data_batch(end_offset, pairs, codec=codec))
        end_offset += len(pairs)
    dirty = random.randrange(end_offset)
    memory_bytes = random.choice([10 * ENTRY_BYTES, 1 << 20])
    by_offset = LogUnderTest({0: batches}, end_offset, dirty, memory_bytes=memory_bytes).clean()
    monkeypatch.setattr(OffsetMap, "judge", lambda _self, _base_offset: None)
    by_key = LogUnderTest({0: batches}, end_offset, dirty, memory_bytes=memory_bytes).clean()
    assert by_offset.bytes == by_key.bytes
    assert by_offset.outcome == by_key.outcome


def test_records_of_a_batch_that_repeat_an_offset_are_told_apart_by_their_keys() -> None:
    records = [Record(0, NOW_MS, key, b"1") for key in (b"a", b"b", b"c")]
    odd = bytes(build_batch(records, base_offset=0, last_offset=2))
    log = LogUnderTest({0: [odd, data_batch(3, [("c", "2")])]}, end_offset=4).clean()
    assert log.survivors == [(0, "a", "1"), (0, "b", "1"), (3, "c", "2")]


def test_a_batch_of_which_all_stays_is_copied_byte_for_byte() -> None:
    untouched = data_batch(0, [("a", "1"), ("b", "1")], codec=Codec.GZIP, level=1)
    log = LogUnderTest({0: [untouched]}, end_offset=2).clean()
    assert log.bytes == untouched


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_with_holes_keeps_its_place_and_its_sequence(codec: Codec) -> None:
    before = data_batch(
        0,
        [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")],
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
    )
    newer = data_batch(4, [("b", "3")])
    log = LogUnderTest({0: [before, newer]}, end_offset=5).clean()
    header = log.headers[0]
    assert log.survivors == [(2, "a", "2"), (4, "b", "3")]
    assert (header.base_offset, header.last_offset, header.count) == (0, 3, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.last_sequence == 43
    assert header.leader_epoch == 3
    assert header.codec is codec
    assert header.base_timestamp == header.max_timestamp == NOW_MS + 2


def test_an_empty_batch_goes() -> None:
    log = LogUnderTest({0: [data_batch(0, [("a", "1")]), data_batch(1, [("a", "2")])]}, end_offset=2).clean()
    assert [header.base_offset for header in log.headers] == [1]


def test_the_last_batch_of_the_round_is_kept_empty() -> None:
    log = LogUnderTest({0: [data_batch(0, [("a", "1")]), data_batch(1, [(None, "2")])]}, end_offset=2).clean()
    last = log.headers[-1]
    assert (last.base_offset, last.count, last.base_timestamp) == (1, 0, NO_TIMESTAMP)
    assert last.size_bytes == 61
    assert last.max_timestamp == NOW_MS + 1


def test_the_whole_window_of_an_active_producer_stays() -> None:
    """A retry of any of its last five batches has to be known, to a replica that reads the log as well."""
    sent = [
        data_batch(offset, [("a", str(offset))], producer_id=7, producer_epoch=0, base_sequence=offset)
        for offset in range(8)
    ]
    log = LogUnderTest(
        {0: sent, 8: [data_batch(8, [("a", "8")])]},
        end_offset=9,
        active_producers=producers((7, 0, range(3, 8))),
    ).clean()
    assert log.survivors == [(8, "a", "8")]
    kept = [(header.base_offset, header.last_sequence, header.count) for header in log.headers]
    assert kept == [(3, 3, 0), (4, 4, 0), (5, 5, 0), (6, 6, 0), (7, 7, 0), (8, -1, 1)]


def test_a_compressed_batch_kept_empty_has_no_codec() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [("a", "1")], codec=Codec.ZSTD, producer_id=7, producer_epoch=0, base_sequence=0)],
         1: [data_batch(1, [("a", "2")])]},
        end_offset=2,
        active_producers=producers((7, 0, [0])),
    ).clean()  # fmt: skip
    assert log.headers[0].codec is Codec.NONE
    assert log.headers[0].count == 0


def test_batches_of_a_producer_that_is_gone_are_not_kept() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [("a", "1")], producer_id=7, producer_epoch=0, base_sequence=0)],
         1: [data_batch(1, [("a", "2")])]},
        end_offset=2,
    ).clean()  # fmt: skip
    assert [header.base_offset for header in log.headers] == [1]


def test_records_without_a_key_go() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [(None, "x"), ("a", "1"), (None, "y"), ("b", "1")])]}, end_offset=4
    ).clean()
    assert log.survivors == [(1, "a", "1"), (3, "b", "1")]


def test_a_tombstone_displaces_and_stays_for_its_horizon() -> None:
    log = LogUnderTest({0: [data_batch(0, [("a", "1"), ("b", "1"), ("a", None)])]}, end_offset=3).clean()
    header = log.headers[0]
    assert log.survivors == [(1, "b", "1"), (2, "a", None)]
    assert header.delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS
    assert header.max_timestamp == NOW_MS + 2
    assert [record.timestamp for record in log.records] == [NOW_MS + 1, NOW_MS + 2]


def test_a_tombstone_goes_once_its_horizon_has_passed() -> None:
    log = LogUnderTest({0: [data_batch(0, [("b", "1"), ("a", None)])]}, end_offset=2).clean()
    log.first_dirty_offset = 2
    log.now_ms = NOW_MS + DELETE_RETENTION_MS - 1
    marked = log.bytes
    assert log.clean().bytes == marked
    log.now_ms = NOW_MS + DELETE_RETENTION_MS
    assert log.clean().survivors == [(0, "b", "1")]
    # The horizon is the base timestamp for good, though nothing waits for it any more.
    assert log.headers[0].delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS


def test_append_time_becomes_the_time_of_each_record() -> None:
    before = data_batch(0, [("a", "1"), ("b", "1")], append_time=NOW_MS + 500)
    log = LogUnderTest({0: [before, data_batch(2, [("a", "2")])]}, end_offset=3).clean()
    header = log.headers[0]
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS + 500, NOW_MS + 500)


# Transactions.


def test_aborted_records_go_and_displace_nothing() -> None:
    log = LogUnderTest(
        {
            0: [
                data_batch(0, [("a", "committed")]),
                data_batch(1, [("a", "aborted")], producer_id=7, producer_epoch=0, base_sequence=0,
                           is_transactional=True),
                marker(2, 7, is_commit=False),
                data_batch(3, [("z", "1")]),
            ]
        },
        end_offset=4,
        aborted=[aborted(7, 1, 2)],
    ).clean()  # fmt: skip
    assert log.survivors == [(0, "a", "committed"), (3, "z", "1")]
    # A batch of the transaction was met in this round, so its marker is not judged yet.
    assert [header.base_offset for header in log.headers] == [0, 2, 3]
    assert log.headers[1].delete_horizon_ms is None
    assert log.retained_aborted(0) == [aborted(7, 1, 2)]


def test_a_marker_goes_two_rounds_after_its_data() -> None:
    log = LogUnderTest(
        {
            0: [
                data_batch(0, [("a", "1")], producer_id=7, producer_epoch=0, base_sequence=0,
                           is_transactional=True),
                marker(1, 7, is_commit=True),
                data_batch(2, [("a", "2"), ("z", "1")]),
            ]
        },
        end_offset=4,
    ).clean()  # fmt: skip
    assert [header.base_offset for header in log.headers] == [1, 2]
    assert not log.headers[0].has_delete_horizon

    log.first_dirty_offset = 4
    log.clean()
    assert log.headers[0].delete_horizon_ms == NOW_MS + DELETE_RETENTION_MS
    assert log.headers[0].is_control

    log.now_ms += DELETE_RETENTION_MS
    log.clean()
    assert [header.base_offset for header in log.headers] == [2]


def test_the_last_marker_of_an_active_producer_without_data_stays() -> None:
    """It carries the producer's epoch, without which an older instance of it could go on writing."""
    log = LogUnderTest(
        {0: [marker(0, 7, is_commit=True, epoch=4), data_batch(1, [("z", "1")])]},
        end_offset=2,
        active_producers=producers((7, 4, [])),
    ).clean()
    log.now_ms += DELETE_RETENTION_MS
    log.first_dirty_offset = 2
    log.clean()
    assert [(header.base_offset, header.producer_epoch, header.count) for header in log.headers] == [
        (0, 4, 0),
        (1, -1, 1),
    ]


def test_a_transaction_whose_marker_lies_above_the_round_is_known_to_be_aborted() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [("a", "1")], producer_id=7, producer_epoch=0, base_sequence=0,
                        is_transactional=True),
             data_batch(1, [("z", "1")])]},
        end_offset=2,
        aborted=[aborted(7, 0, 9)],
    ).clean()  # fmt: skip
    assert log.survivors == [(1, "z", "1")]


# Segments, memory and steps.


def test_small_segments_become_one() -> None:
    segments = {offset: [data_batch(offset, [(f"key-{offset}", "v" * 50)])] for offset in range(6)}
    size = len(segments[0][0])
    config = LogConfig(is_compacted=True, segment_bytes=2 * size, index_interval_bytes=1)
    log = LogUnderTest(segments, end_offset=6, config=config).clean()
    assert [group.replaced for group in log.groups] == [(0, 1), (2, 3), (4, 5)]
    assert len(log.survivors) == 6


def test_indexes_go_with_the_new_segment() -> None:
    segments = {offset: [data_batch(offset, [(f"key-{offset}", "v" * 50)])] for offset in range(4)}
    size = len(segments[0][0])
    config = LogConfig(is_compacted=True, index_interval_bytes=size)
    log = LogUnderTest(segments, end_offset=4, config=config).clean()
    # The first batch that more than an interval precedes is the third.
    assert log.read(0, FileKind.OFFSET_INDEX) == b"".join([(2).to_bytes(4) + (2 * size).to_bytes(4)])
    assert log.read(0, FileKind.TIME_INDEX) == b"".join(
        [(NOW_MS + offset).to_bytes(8) + offset.to_bytes(4) for offset in (2, 3)]
    )


def test_a_full_map_ends_the_round_early() -> None:
    pairs = [(f"key-{at}", "1") for at in range(10)]
    older = [data_batch(0, pairs), data_batch(10, pairs)]
    log = LogUnderTest({0: older}, end_offset=20, memory_bytes=4 * ENTRY_BYTES).clean()
    assert log.outcome is not None
    assert log.outcome.first_dirty_offset == 4
    # Offset 4 to 9 are not judged yet, and the second batch is above all that the map knows.
    assert [offset for offset, _, _ in log.survivors] == [*range(20)]

    rounds = 0
    while log.outcome.first_dirty_offset < 20:
        log.first_dirty_offset = log.outcome.first_dirty_offset
        log.clean()
        rounds += 1
    assert [offset for offset, _, _ in log.survivors] == [*range(10, 20)]
    assert rounds == 4


@pytest.mark.parametrize("chunk_bytes", [1, 100, 200, 10_000])
def test_batches_larger_than_a_chunk_are_read_whole(chunk_bytes: int) -> None:
    batches = [data_batch(offset, [("a", "v" * 150), (f"b{offset}", "1")]) for offset in range(0, 10, 2)]
    log = LogUnderTest({0: batches}, end_offset=10, chunk_bytes=chunk_bytes).clean()
    assert [offset for offset, _, _ in log.survivors] == [1, 3, 5, 7, 8, 9]


def test_every_step_says_how_much_was_read_and_written() -> None:
    batches = [data_batch(offset, [(f"key-{offset}", "v" * 500)]) for offset in range(20)]
    size = sum(map(len, batches))
    log = LogUnderTest({0: batches}, end_offset=20, chunk_bytes=1500).clean()
    assert sum(step.read_bytes for step in log.progress) == 2 * size
    assert sum(step.written_bytes for step in log.progress) == size
    assert max(step.read_bytes for step in log.progress) <= 1500


def test_stopping_early_leaves_nothing_behind() -> None:
    batches = [data_batch(offset, [(f"key-{offset}", "v" * 500)]) for offset in range(20)]
    log = LogUnderTest({0: batches}, end_offset=20)
    steps = clean(log.task(), log.disk, 1 << 20, 1500)
    for _ in range(20):
        next(steps)
    assert [entry.name for entry in log.disk.list(DIRECTORY)] == [
        "00000000000000000000.log",
        "00000000000000000000.log.cleaned",
    ]
    steps.close()
    assert [entry.name for entry in log.disk.list(DIRECTORY)] == ["00000000000000000000.log"]


@pytest.mark.parametrize("position", [0, 8, 25, 70, 130])
def test_damaged_bytes_are_not_made_sound_again(position: int) -> None:
    batches = [data_batch(0, [("a", "1"), ("b", "1")]), data_batch(2, [("a", "2"), ("b", "2")])]
    if position in (0, 8):
        damaged = bytearray(batches[0])
        damaged[8:12] = (1 << 20).to_bytes(4)
    else:
        damaged = bytearray(batches[0])
        damaged[min(position, len(damaged) - 1)] ^= 1
    log = LogUnderTest({0: [bytes(damaged), batches[1]]}, end_offset=4)
    with pytest.raises(CorruptBatch):
        log.clean()
    assert [entry.name for entry in log.disk.list(DIRECTORY)] == ["00000000000000000000.log"]


def test_offsets_that_do_not_fit_a_segment_are_noticed() -> None:
    log = LogUnderTest(
        {0: [data_batch(0, [("a", "1")]), data_batch(1 << 31, [("b", "1")])]}, end_offset=(1 << 31) + 1
    )
    with pytest.raises(OffsetOverflow, match="2147483648"):
        log.clean()
