"""Which batches a reader is to see."""

from ottla.client.fetching import FetchedPartition, IsolationLevel, next_offset, visible_batches
from ottla.model.ids import TopicPartition
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import AbortedTransaction

WHERE = TopicPartition("t", 0)


def _records(offset: int, producer_id: int = -1, count: int = 2) -> bytes:
    return bytes(
        build_batch(
            [Record(offset + step, 1, None, b"v") for step in range(count)],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            is_transactional=producer_id >= 0,
        )
    )


def _marker(offset: int, producer_id: int, is_commit: bool) -> bytes:
    return bytes(
        build_end_txn_batch(
            EndTxnMarker(is_commit, 0),
            timestamp=1,
            producer_id=producer_id,
            producer_epoch=0,
            base_offset=offset,
        )
    )


def _seen(data: bytes, aborted: dict[int, int], isolation: IsolationLevel) -> list[int]:
    listed = tuple(
        AbortedTransaction(producer_id=producer_id, first_offset=offset)
        for offset, producer_id in aborted.items()
    )
    fetched = FetchedPartition(WHERE, 0, ErrorCode.NONE, 99, 99, 0, listed, memoryview(data))
    return [batch.base_offset for batch in visible_batches(fetched, isolation)]


LOG = (
    _records(0, producer_id=1)
    + _records(2, producer_id=2)
    + _records(4)
    + _marker(6, producer_id=1, is_commit=False)
    + _records(7, producer_id=1)
    + _marker(9, producer_id=2, is_commit=True)
    + _marker(10, producer_id=1, is_commit=True)
)


def test_committed_readers_do_not_see_what_was_aborted_nor_markers() -> None:
    assert _seen(LOG, {0: 1}, IsolationLevel.READ_COMMITTED) == [2, 4, 7]


def test_other_readers_see_everything_but_markers() -> None:
    assert _seen(LOG, {}, IsolationLevel.READ_UNCOMMITTED) == [0, 2, 4, 7]


def test_a_producer_that_aborts_twice_is_left_out_twice() -> None:
    log = LOG + _records(11, producer_id=1) + _marker(13, producer_id=1, is_commit=False) + _records(14)
    # The list need not be in order.
    assert _seen(log, {11: 1, 0: 1}, IsolationLevel.READ_COMMITTED) == [2, 4, 7, 14]


def test_records_of_an_aborter_that_are_not_transactional_are_seen() -> None:
    plain = build_batch(
        [Record(0, 1, None, b"v")], base_offset=0, producer_id=1, producer_epoch=0, base_sequence=0
    )
    assert _seen(bytes(plain), {0: 1}, IsolationLevel.READ_COMMITTED) == [0]


def test_reading_goes_on_after_the_last_whole_batch() -> None:
    assert next_offset(memoryview(LOG), 3) == 11
    assert next_offset(memoryview(LOG)[:-1], 3) == 10
    assert next_offset(memoryview(LOG)[:30], 3) == 3
