"""Runs of records with the same delivery state, and what they become when others are added to them."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

_last_offset = attrgetter("last_offset")


class StateBatch(NamedTuple):
    """Records in a row with the same delivery state and delivery count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def rank(self) -> tuple[int, int]:
        """Where two batches say different things of a record, the greater one is the later one."""
        return self.delivery_count, self.delivery_state

    def part(self, first_offset: int, last_offset: int) -> "StateBatch":
        """Return what is said of a part of the records."""
        return StateBatch(first_offset, last_offset, self.delivery_state, self.delivery_count)


def combine(
    batches: Sequence[StateBatch], added: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return the batches with those that are added, as few as say the same, from `start_offset` on.

    `batches` are in order, and none of them overlap. Those that are added may.
    """
    combined = list(batches)
    for one in added:
        _put(combined, one)
    if start_offset >= 0:
        _cut_head(combined, start_offset)
    return tuple(combined)


def _put(batches: list[StateBatch], new: StateBatch) -> None:
    begin = end = bisect_left(batches, new.first_offset, key=_last_offset)
    pieces: list[StateBatch] = []
    position = new.first_offset
    while end < len(batches) and batches[end].first_offset <= new.last_offset:
        old = batches[end]
        end += 1
        if old.first_offset < position:
            pieces.append(old.part(old.first_offset, position - 1))
        elif position < old.first_offset:
            pieces.append(new.part(position, old.first_offset - 1))
            position = old.first_offset
        last = min(old.last_offset, new.last_offset)
        pieces.append(max(old, new, key=lambda one: one.rank).part(position, last))
        if old.last_offset > last:
            pieces.append(old.part(last + 1, old.last_offset))
        position = last + 1
    if position <= new.last_offset:
        pieces.append(new.part(position, new.last_offset))
    # The neighbours may say the same.
    left, right = batches[max(begin - 1, 0) : begin], batches[end : end + 1]
    batches[begin - len(left) : end + len(right)] = _merged([*left, *pieces, *right])


def _merged(batches: Iterable[StateBatch]) -> list[StateBatch]:
    merged: list[StateBatch] = []
    for one in batches:
        last = merged[-1] if merged else None
        if last is not None and last.last_offset + 1 == one.first_offset and last.rank == one.rank:
            merged[-1] = last.part(last.first_offset, one.last_offset)
        else:
            merged.append(one)
    return merged


def _cut_head(batches: list[StateBatch], start_offset: int) -> None:
    del batches[: bisect_left(batches, start_offset, key=_last_offset)]
    if batches and batches[0].first_offset < start_offset:
        batches[0] = batches[0].part(start_offset, batches[0].last_offset)
