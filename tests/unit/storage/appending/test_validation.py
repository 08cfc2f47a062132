"""What a leader refuses of a producer, with which error code, and what it changes in a batch."""

import pytest
from tests.unit.storage.logs import NOW_MS, append, batch, batches_of, new_log

from ottla.model.ids import NO_TIMESTAMP
from ottla.records.attributes import APPEND_TIME_BIT, CONTROL_BIT, Codec, TimestampType
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record, encode_records
from ottla.records.compression import compress
from ottla.storage.appending.record_checks import RecordsValidation
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode

COMPACTED = LogConfig(is_compacted=True)
HOUR_MS = 3_600_000


def refusal(records: memoryview, config: LogConfig | None = None) -> AppendError:
    """Append to a fresh log and return why it refused. Nothing may be in it then."""
    log = new_log(config or LogConfig())
    with pytest.raises(AppendError) as refused:
        append(log, records)
    assert log.log_end_offset == 0
    assert log.size_bytes == 0
    return refused.value


def stored(records: memoryview, config: LogConfig) -> BatchView:
    """Append to a fresh log and return the one batch it has then."""
    log = new_log(config)
    append(log, records)
    (view,) = batches_of(log)
    assert view.crc_is_valid()
    return view


def patched(records: memoryview, position: int, data: bytes, *, keeps_checksum: bool = False) -> memoryview:
    """Return a batch with some bytes of its header replaced, and a checksum to match."""
    copy = memoryview(bytearray(records))
    copy[position : position + len(data)] = data
    if not keeps_checksum:
        view = BatchView(copy)
        view.patch_max_timestamp(view.max_timestamp)
    return copy


def test_no_records_at_all_are_refused() -> None:
    assert refusal(memoryview(bytearray())).error_code is ErrorCode.INVALID_RECORD


def test_two_batches_at_once_are_refused() -> None:
    two = memoryview(bytearray(bytes(batch()) + bytes(batch())))
    assert refusal(two).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("stray", [b"x", bytes(batch())[:-1]], ids=["a byte", "a batch that is cut off"])
def test_a_batch_with_something_behind_it_is_refused(stray: bytes) -> None:
    records = memoryview(bytearray(bytes(batch()) + stray))
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_a_batch_that_is_cut_off_is_refused() -> None:
    assert refusal(batch()[:-1]).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [-1, 0, 13, 20, 48])
def test_a_length_that_no_batch_can_have_is_corrupt(length: int) -> None:
    records = patched(batch(), 8, length.to_bytes(4, signed=True), keeps_checksum=True)
    assert refusal(records).error_code is ErrorCode.CORRUPT_MESSAGE


def test_an_unknown_magic_is_corrupt() -> None:
    assert refusal(patched(batch(), 16, b"\x03", keeps_checksum=True)).error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_format_is_refused(magic: int) -> None:
    records = patched(batch(), 16, bytes([magic]), keeps_checksum=True)
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_a_wrong_checksum_is_corrupt() -> None:
    records = batch()
    records[-1] ^= 1
    assert refusal(records).error_code is ErrorCode.CORRUPT_MESSAGE


def test_a_base_offset_other_than_zero_is_refused() -> None:
    records = patched(batch(), 0, (1).to_bytes(8))
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_a_batch_above_the_limit_is_too_large_and_one_at_the_limit_is_not() -> None:
    records = batch(value=b"x" * 500)
    error = refusal(records, LogConfig(max_message_bytes=len(records) - 1))
    assert error.error_code is ErrorCode.MESSAGE_TOO_LARGE
    append(new_log(LogConfig(max_message_bytes=len(records))), records)


def test_size_is_judged_before_the_checksum() -> None:
    records = batch(value=b"x" * 500)
    records[-1] ^= 1
    assert refusal(records, LogConfig(max_message_bytes=100)).error_code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("count", [0, 1, 3, -1])
def test_a_count_that_does_not_fit_the_offsets_is_refused(count: int) -> None:
    records = patched(batch(2), 57, count.to_bytes(4, signed=True))
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_control_batches_of_clients_are_refused() -> None:
    records = patched(batch(), 21, CONTROL_BIT.to_bytes(2))
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_a_producer_id_without_a_sequence_is_refused() -> None:
    assert refusal(batch(producer_id=7, epoch=0, sequence=-1)).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    records = patched(batch(), 21, codec.to_bytes(2))
    assert refusal(records).error_code is ErrorCode.INVALID_RECORD


def test_more_bytes_than_a_segment_holds_are_refused() -> None:
    records = batch(value=b"x" * 500)
    assert refusal(records, LogConfig(segment_bytes=100)).error_code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_compacted_topic_names_every_record_without_a_key() -> None:
    records = build_batch(
        [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, None, b"v"), Record(2, NOW_MS, None, b"v")]
    )
    error = refusal(memoryview(records), COMPACTED)
    assert error.error_code is ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in error.record_errors] == [1, 2]


def test_a_compacted_topic_takes_keys_under_any_codec() -> None:
    for codec in Codec:
        view = stored(batch(3, codec=codec), COMPACTED)
        assert view.codec is codec


def test_a_compacted_topic_refuses_offset_deltas_that_are_not_consecutive() -> None:
    records = build_batch([Record(0, NOW_MS, b"k", b"v"), Record(2, NOW_MS, b"k", b"v")], last_offset=1)
    assert refusal(memoryview(records), COMPACTED).error_code is ErrorCode.INVALID_RECORD


def test_records_that_cannot_be_decompressed_are_corrupt_where_they_are_opened() -> None:
    records = batch(3, codec=Codec.GZIP)
    records[-3] ^= 0xFF
    view = BatchView(records)
    view.patch_max_timestamp(view.max_timestamp)
    assert refusal(records, COMPACTED).error_code is ErrorCode.CORRUPT_MESSAGE


def test_a_decompression_bomb_is_refused() -> None:
    records = batch(value=b"\x00" * 3_000_000, codec=Codec.GZIP)
    config = LogConfig(is_compacted=True, decompressed_bytes_max=2_000_000)
    assert refusal(records, config).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_timestamp_too_far_ahead_is_refused_with_the_record_that_has_it() -> None:
    records = batch(timestamps=[NOW_MS, NOW_MS + HOUR_MS + 1, NOW_MS])
    error = refusal(records)
    assert error.error_code is ErrorCode.INVALID_TIMESTAMP
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    assert [record.batch_index for record in error.record_errors] == [1]


def test_a_timestamp_at_the_edge_is_accepted() -> None:
    append(new_log(LogConfig()), batch(timestamps=[NOW_MS + HOUR_MS]))


def test_a_timestamp_too_old_is_refused_where_the_topic_says_so() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1000)
    append(new_log(config), batch(timestamps=[NOW_MS - 1000]))
    error = refusal(batch(timestamps=[NOW_MS, NOW_MS - 1001]), config)
    assert error.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [1]


def test_records_without_timestamps_are_stored_as_such_though_the_header_gives_a_largest_one() -> None:
    records = batch(timestamps=[NO_TIMESTAMP, NO_TIMESTAMP])
    BatchView(records).patch_max_timestamp(0)  # As librdkafka writes it.
    log = new_log(LogConfig())
    append(log, records)
    (view,) = batches_of(log)
    assert view.max_timestamp == NO_TIMESTAMP
    assert view.crc_is_valid()
    segment = log.active_segment
    assert segment.largest_timestamp_ms == segment.modified_ms, "retention goes by the file's age"


def test_a_max_timestamp_that_is_wrong_is_corrected_where_records_are_opened() -> None:
    records = batch(timestamps=[NOW_MS - 5, NOW_MS - 9])
    BatchView(records).patch_max_timestamp(NOW_MS - 1)
    assert stored(records, COMPACTED).max_timestamp == NOW_MS - 5


def test_append_time_is_set_on_the_batch_and_all_its_records() -> None:
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = new_log(config)
    info = append(log, batch(timestamps=[1, 2]), now_ms=NOW_MS + 7)
    (view,) = batches_of(log)
    assert info.log_append_time_ms == NOW_MS + 7
    assert view.crc_is_valid()
    assert view.attributes & APPEND_TIME_BIT
    assert [record.timestamp for record in iter_batch_records(view)] == [NOW_MS + 7] * 2


def test_a_batch_that_claims_append_time_is_refused_where_the_broker_sets_it() -> None:
    config = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert refusal(batch(append_time=NOW_MS), config).error_code is ErrorCode.INVALID_TIMESTAMP


def test_a_batch_that_claims_append_time_gets_its_own_timestamps_back_elsewhere() -> None:
    view = stored(batch(timestamps=[NOW_MS - 3, NOW_MS - 4], append_time=NOW_MS), LogConfig())
    assert not view.attributes & APPEND_TIME_BIT
    assert view.max_timestamp == NOW_MS - 3


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_a_topic_with_a_codec_has_every_batch_in_it(source: Codec, target: Codec) -> None:
    records = batch(
        5,
        value=b"some value " * 10,
        codec=source,
        producer_id=4,
        epoch=1,
        sequence=9,
        is_transactional=True,
    )
    before = BatchView(memoryview(bytearray(records)))
    view = stored(records, LogConfig(compression_type=target, verifies_transactions=False))
    assert view.codec is target
    assert list(iter_batch_records(view)) == list(iter_batch_records(before))
    changed = {"batch_length": 0, "crc": 0, "leader_epoch": 0, "attributes": 0}
    assert view.header._replace(**changed) == before.header._replace(**changed)
    assert view.is_transactional


def test_a_batch_that_grows_beyond_the_limit_by_another_codec_is_too_large() -> None:
    records = batch(value=b"x" * 5000, codec=Codec.GZIP)
    config = LogConfig(compression_type=Codec.NONE, max_message_bytes=1000)
    assert refusal(records, config).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_under_the_topics_codec_is_not_opened() -> None:
    records = batch(3, codec=Codec.GZIP)
    expected = bytes(records[61:])
    view = stored(records, LogConfig(compression_type=Codec.GZIP))
    assert bytes(view.records_bytes) == expected


def poisoned(records: memoryview, area: bytes | None = None, **header: int) -> memoryview:
    """Return a batch with another record area or count, and a checksum that is right."""
    made = bytearray(records[:61]) + (bytes(records[61:]) if area is None else area)
    made[8:12] = (len(made) - 12).to_bytes(4)
    if "count" in header:
        made[57:61] = header["count"].to_bytes(4)
        made[23:27] = (header["count"] - 1).to_bytes(4)
    view = BatchView(memoryview(made))
    view.patch_max_timestamp(view.max_timestamp)
    return memoryview(made)


ONE = Record(0, NOW_MS, b"k", b"value")
POISON = {
    "garbage": lambda records: poisoned(records, b"\xff" * 40),
    "zeros": lambda records: poisoned(records, bytes(40)),
    "a count too large": lambda records: poisoned(records, count=3),
    "a count too small": lambda records: poisoned(records, count=1),
    "a count that no bytes could hold": lambda records: poisoned(records, count=1_000_000),
    "bytes behind the last record": lambda records: poisoned(records, bytes(records[61:]) + b"\0"),
    "a record cut off": lambda records: poisoned(records, bytes(records[61:-1])),
    "an offset delta twice": lambda records: poisoned(records, encode_records([ONE, ONE], 0, NOW_MS)),
    "offset deltas with a gap": lambda records: poisoned(
        records, encode_records([ONE, ONE._replace(offset=5)], 0, NOW_MS)
    ),
    "a header count that lies": lambda records: poisoned(records, bytes(records[61:-1]) + b"\x06"),
    "a key length that lies": lambda records: poisoned(
        records, bytes(records[61:65]) + b"\x7e" + bytes(records[66:])
    ),
}


@pytest.mark.parametrize("name", POISON)
@pytest.mark.parametrize("validation", [RecordsValidation.AUTO, RecordsValidation.RECORDS])
@pytest.mark.parametrize("codec", Codec)
def test_poison_is_refused(name: str, validation: RecordsValidation, codec: Codec) -> None:
    plain = POISON[name](batch(2))
    made = plain if codec is Codec.NONE else recompressed(plain, codec)
    log = new_log(LogConfig(records_validation=validation))
    with pytest.raises(AppendError) as caught:
        append(log, made)
    assert caught.value.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert log.log_end_offset == 0


def recompressed(plain: memoryview, codec: Codec) -> memoryview:
    made = bytearray(poisoned(plain, compress(codec, bytes(plain[61:]))))
    made[22] = codec
    view = BatchView(memoryview(made))
    view.patch_max_timestamp(view.max_timestamp)
    return memoryview(made)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_damaged_compression_is_refused(codec: Codec) -> None:
    made = poisoned(recompressed(batch(2), codec), b"\x13\x37" * 20)
    with pytest.raises(AppendError):
        append(new_log(LogConfig()), made)


def test_by_the_header_alone_only_impossible_counts_are_refused() -> None:
    config = LogConfig(records_validation=RecordsValidation.HEADER)
    append(new_log(config), POISON["garbage"](batch(2)))
    impossible = POISON["a count that no bytes could hold"](batch(2))
    assert refusal(impossible, config).error_code is ErrorCode.INVALID_RECORD
    packed = recompressed(poisoned(batch(2), count=2_000_000_000), Codec.LZ4)
    assert refusal(packed, config).error_code is ErrorCode.INVALID_RECORD


def test_of_a_large_batch_the_beginning_is_checked() -> None:
    sound = batch(2000)
    late = bytearray(sound)
    late[-1] ^= 1
    wrong_at_the_end = poisoned(memoryview(late), bytes(late[61:]))
    append(new_log(LogConfig()), wrong_at_the_end)
    early = bytearray(sound)
    early[64] ^= 2
    wrong_at_the_start = poisoned(memoryview(early), bytes(early[61:]))
    assert refusal(wrong_at_the_start, LogConfig()).error_code is ErrorCode.INVALID_RECORD
    config = LogConfig(records_validation=RecordsValidation.RECORDS)
    assert refusal(wrong_at_the_end, config).error_code is ErrorCode.INVALID_RECORD


def test_the_broken_batch_of_a_client_does_not_change() -> None:
    records = batch(2, timestamps=[1, 2])
    records[-1] ^= 1
    before = bytes(records)
    refusal(records)
    assert bytes(records) == before


def test_one_bad_record_out_of_many_is_not_an_answer_of_many_megabytes() -> None:
    records = build_batch([Record(index, NOW_MS, None, b"") for index in range(5000)])
    assert len(refusal(memoryview(records), COMPACTED).record_errors) == 100


def test_iterating_what_was_stored_gives_one_batch() -> None:
    log = new_log(LogConfig())
    append(log, batch(3))
    content = memoryview(log.read(log.log_start_offset, 1 << 20).read())
    assert len(list(iter_batches(content))) == 1
