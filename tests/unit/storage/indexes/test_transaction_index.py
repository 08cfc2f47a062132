"""The index of aborted transactions, against the bytes that Apache Kafka 4.3.1 wrote."""

import pytest

from ottla.model.ids import Offset, ProducerId
from ottla.storage.file_errors import CorruptFile
from ottla.storage.indexes.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
    find_aborted,
    truncate_aborted,
)

KAFKA_BYTES = bytes.fromhex(
    "0000000000000000000d00000000000000060000000000000009000000000000000a"
    "0000000000000000000d000000000000000f00000000000000100000000000000011"
)
BASE = Offset(5)


def aborted(producer_id: int, first: int, last: int, last_stable: int) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer_id), Offset(first), Offset(last), Offset(last_stable))


FIRST = aborted(13, 6, 9, 10)
SECOND = aborted(13, 15, 16, 17)


def test_kafkas_bytes_are_read_and_written_back() -> None:
    transactions = decode_transaction_index(KAFKA_BYTES, BASE)
    assert transactions == [FIRST, SECOND]
    assert encode_transaction_index(transactions) == KAFKA_BYTES


@pytest.mark.parametrize(
    ("start", "end", "found", "is_complete"),
    [
        (0, 6, [], True),
        (0, 7, [FIRST], True),
        (9, 10, [FIRST], True),
        (10, 15, [], True),
        (10, 16, [SECOND], True),
        (5, 18, [FIRST, SECOND], False),
    ],
)
def test_a_range_finds_the_transactions_that_reach_into_it(
    start: int, end: int, found: list[AbortedTransaction], is_complete: bool
) -> None:
    assert find_aborted([FIRST, SECOND], Offset(start), Offset(end)) == (found, is_complete)


def test_a_later_segment_may_hold_a_transaction_that_began_before_the_end() -> None:
    """The last stable offset was still 3 when this one ended: another had begun there and was open."""
    early_end = aborted(1, 5, 7, 3)
    assert find_aborted([early_end], Offset(0), Offset(8)) == ([early_end], False)


def test_truncating_forgets_transactions_whose_marker_is_cut() -> None:
    assert truncate_aborted([FIRST, SECOND], Offset(16)) == [FIRST]
    assert truncate_aborted([FIRST, SECOND], Offset(17)) == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (KAFKA_BYTES[:-1], "multiple"),
        (b"\x00\x01" + KAFKA_BYTES[2:], "version 1"),
        (KAFKA_BYTES[34:] + KAFKA_BYTES[:34], "after one that ended at 16"),
        (KAFKA_BYTES + bytes(34), "after one that ended at 16"),
        (encode_transaction_index([aborted(1, 9, 8, 9)]), "transaction 9 to 8"),
        (encode_transaction_index([aborted(1, 2, 4, 5)]), "transaction 2 to 4"),
    ],
)
def test_a_damaged_index_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        decode_transaction_index(content, BASE)


def test_a_range_at_the_end_does_not_look_at_all_that_was_aborted_before() -> None:
    class Counted(list[AbortedTransaction]):
        looks = 0

        def __getitem__(self, place):  # type: ignore[no-untyped-def]
            self.looks += 1
            return super().__getitem__(place)

        def __iter__(self):  # type: ignore[no-untyped-def]
            self.looks += len(self)
            return super().__iter__()

    many = Counted(aborted(1, 2 * number, 2 * number + 1, 2 * number + 2) for number in range(1000))
    found = find_aborted(many, Offset(1990), Offset(1995))
    assert [one.first_offset for one in found.transactions] == [1990, 1992, 1994]
    assert many.looks < 30
