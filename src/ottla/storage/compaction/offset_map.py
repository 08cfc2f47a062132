"""The offset map: for every key of the dirty part of a log, the offset of its newest record.

A round of cleaning fills it as far as its memory goes, and then cleans the log up to where it got. What is
above `latest_offset` is not judged in this round.

When it is full, or has all keys, the newest offsets are known as well. Most batches of the dirty part are
judged by them alone when their turn comes (`OffsetMap.judged`): a number is found four times as fast as a
key, nothing has to be decompressed and scanned for keys again, and a batch that stays whole or goes whole is
not even opened. A log of 1 KB records of which half go is compacted in three quarters of the time.

Deviation: Kafka's map takes 24 bytes of a fixed buffer for each key, with a 16-byte digest in an open hash
table. A table like that takes 2 us for each access in Python; a `dict` takes 0.2 us but, with its keys and
numbers, about 250 bytes for each key. The memory allowed (`log.cleaner.dedupe.buffer.size`) is counted in
those, so it holds a tenth as many keys, and a log with more of them takes more rounds.
"""

from collections.abc import Iterable
from typing import Final

# Up to 80 for the key, 32 for the offset, 30 to 120 in the table as it grows: 90 in the middle; and half of
# that in the set of the newest offsets.
ENTRY_BYTES: Final = 250


class OffsetMap:
    """Key digests and the newest offset of each."""

    __slots__ = ("entries_max", "judged", "latest_offset", "newest", "offsets")

    def __init__(self, memory_bytes: int) -> None:
        """Make an empty map that may take `memory_bytes`, and that takes one entry at least."""
        self.entries_max = max(1, memory_bytes // ENTRY_BYTES)
        self.offsets: dict[bytes | None, int] = {}
        # Everything up to here was looked at.
        self.latest_offset = -1
        # The base offsets of batches whose records all have a key and a value, consecutive offsets, and an
        # entry here or a newer record that has: the offset of a record says whether it stays.
        self.judged: set[int] = set()
        # The offsets of all entries, once the map is complete.
        self.newest: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.offsets)

    def put_all(self, keys: list[bytes | None], offsets: Iterable[int]) -> bool:
        """Note the offsets of keys, in ascending order. Returns False if the map was full before the last.

        The keys of a record that finds the map full are not noted, and neither are any after it.
        """
        if len(self.offsets) + len(keys) <= self.entries_max and None not in keys:
            # Done by the interpreter in one call, which is ten times as fast as a loop.
            self.offsets.update(zip(keys, offsets, strict=True))
            return True
        for key, offset in zip(keys, offsets, strict=True):
            if key is None:
                continue
            if len(self.offsets) >= self.entries_max:
                return False
            self.offsets[key] = offset
            self.latest_offset = offset
        return True

    def judge(self, base_offset: int) -> None:
        """Note a batch of which offsets say everything. What does not fit is looked up by its keys."""
        if len(self.judged) < self.entries_max:
            self.judged.add(base_offset)

    def complete(self) -> None:
        """Note that nothing more will be put."""
        self.newest = frozenset(self.offsets.values())

    def advance(self, offset: int) -> None:
        """Note that everything up to `offset` was looked at."""
        self.latest_offset = max(self.latest_offset, offset)
