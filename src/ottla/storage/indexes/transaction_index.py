"""The aborted transactions of a segment (`.txnindex`): what a read_committed reader has to leave out.

    off size  field
     0   2    version = 0
     2   8    producer id
    10   8    first offset of the transaction
    18   8    last offset: the one of its ABORT marker
    26   8    last stable offset when the transaction ended

Entries of 34 bytes, big-endian, last offsets strictly ascending, in the segment that holds the marker. The
file exists only if it has an entry.

Works on bytes in memory. Reading and writing the file is the segment's.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from ottla.model.ids import Offset, ProducerId
from ottla.storage.file_errors import CorruptFile

ENTRY_BYTES: Final = 34
VERSION: Final = 0

_ENTRY: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """A transaction of which nothing may be shown to a read_committed reader."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset

    def encode(self) -> bytes:
        """Return the 34 bytes of its entry."""
        return _ENTRY.pack(VERSION, *self)


class FoundAborted(NamedTuple):
    """Aborted transactions of a range of offsets, and whether later segments can hold more of them."""

    transactions: list[AbortedTransaction]
    is_complete: bool


def encode_transaction_index(transactions: Iterable[AbortedTransaction]) -> bytes:
    """Return the bytes of an index file."""
    return b"".join([transaction.encode() for transaction in transactions])


def decode_transaction_index(entries: bytes | memoryview, base_offset: Offset) -> list[AbortedTransaction]:
    """Read an index file. Raises `CorruptFile` for what no writer of the segment at `base_offset` leaves."""
    if len(entries) % ENTRY_BYTES:
        raise CorruptFile("transaction index", f"{len(entries)} bytes are not a multiple of {ENTRY_BYTES}")
    transactions: list[AbortedTransaction] = []
    previous = base_offset - 1
    for version, producer_id, first_offset, last_offset, last_stable_offset in _ENTRY.iter_unpack(entries):
        if version != VERSION:
            raise CorruptFile("transaction index", f"entry of version {version}")
        if last_offset <= previous or first_offset > last_offset:
            raise CorruptFile(
                "transaction index",
                f"transaction {first_offset} to {last_offset} after one that ended at {previous}",
            )
        previous = last_offset
        transactions.append(AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset))
    return transactions


def find_aborted(transactions: Sequence[AbortedTransaction], start: Offset, end: Offset) -> FoundAborted:
    """Find the transactions of one segment's index that reach into the offsets from `start` to before `end`.

    Once a transaction ended when everything below `end` was stable, later entries began at `end` or after.
    """
    found: list[AbortedTransaction] = []
    for place in range(bisect_left(transactions, start, key=_last_offset_of), len(transactions)):
        transaction = transactions[place]
        if transaction.first_offset < end:
            found.append(transaction)
        if transaction.last_stable_offset >= end:
            return FoundAborted(found, is_complete=True)
    return FoundAborted(found, is_complete=False)


def _last_offset_of(transaction: AbortedTransaction) -> Offset:
    return transaction.last_offset


def truncate_aborted(transactions: Iterable[AbortedTransaction], offset: Offset) -> list[AbortedTransaction]:
    """Return the transactions whose marker lies below `offset`. The others are open again."""
    return [transaction for transaction in transactions if transaction.last_offset < offset]
