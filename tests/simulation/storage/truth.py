"""What one log should be, as seen by those who use it: its history, and what of it was promised to last.

A history is the list of all batches appended; a truncation cuts it. Deleted batches stay in it, because
producers and epochs outlive them; the log start says what is still there. Compaction changes batches, so what
the log stores is kept beside the history (`stored`).

After a power cut a log may fall back. To what, is said here: to a beginning of its history, either as it is
or as it was at some moment after the last completed sync, that keeps all that was promised. Promised is
everything below `synced_end`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tests.simulation.storage.batches import Batch, read_batches
from tests.simulation.storage.model import Replay, last_stable_offset


class State(NamedTuple):
    """What a log stores, and the history that it came from."""

    stored: list[Batch]
    history: list[Batch]


class Truth:
    """What a log should be."""

    def __init__(self) -> None:
        self.stored: list[Batch] = []
        self.history: list[Batch] = []
        self.replay = Replay()
        self.start = 0
        self.end = 0
        self.high_watermark = 0
        self.leader_epoch = 0
        # Below this a power cut takes nothing.
        self.synced_end = 0
        # The largest log start that a restart may come up with. It may fall back: it is not always synced.
        self.start_max = 0
        # The largest values there ever were: older ones may come back from files that were not replaced.
        self.start_ever = 0
        self.high_watermark_ever = 0
        self.producers_ever: set[int] = set()
        # Other states that may be found: those that a truncation or a compaction ended, as long as that was
        # not synced, and the one with the append that was under way when the machine went down.
        self.others: list[State] = []
        # What a start may make of a swap that was begun. The first is what the swap itself makes.
        self.staged: list[State] = []
        # A rebuilt state of producers knows less: no more than one batch of each, and no deleted ones.
        self.is_rebuilt = False
        self.is_compacted = False
        # Below this compaction has taken decisions for final.
        self.compacted_end = 0
        # Producers that were silent for so long that they may be forgotten, or were once.
        self.expired: set[int] = set()

    @property
    def last_stable_offset(self) -> int:
        return max(self.start, last_stable_offset(self.replay, self.high_watermark))

    @property
    def state(self) -> State:
        return State(self.stored, self.history)

    def append(self, data: bytes) -> list[Batch]:
        """Take what a log has appended."""
        batches = read_batches(data)
        for batch in batches:
            self.stored.append(batch)
            self.history.append(batch)
            for state in self.staged:
                state.stored.append(batch)
            self.replay.replay(batch)
            self.end = batch.last_offset + 1
            self.producers_ever.add(batch.producer_id)
        return batches

    def may_append(self, data: bytes) -> None:
        """Take what a log was about to append when the machine went down."""
        batches = read_batches(data)
        for state in (self.state, *self.staged):
            self.others.append(State([*state.stored, *batches], [*self.history, *batches]))
        self.producers_ever.update(batch.producer_id for batch in batches)

    def truncate_to(self, offset: int) -> None:
        """Cut the batch that holds `offset`, and all after it."""
        if offset >= self.end:
            return
        self._set_aside()
        # If the power went while the compaction was to be ended.
        self.others += [State(list(state.stored), self.history) for state in self.staged]
        cut = [batch for batch in self.stored if batch.base_offset < offset <= batch.last_offset]
        self.end = cut[0].base_offset if cut else offset
        self.stored = [batch for batch in self.stored if batch.last_offset < self.end]
        self.history = [batch for batch in self.history if batch.last_offset < self.end]
        self.start = min(self.start, self.end)
        self.staged = [
            State([batch for batch in state.stored if batch.last_offset < self.end], self.history)
            for state in self.staged
        ]
        self._recompute()

    def start_anew_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        self._set_aside()
        self.others += self.staged
        self.stored, self.history = [], []
        self.is_compacted = False
        self.staged = []
        self.start_max = max(self.start_max, offset)
        self.start_ever = max(self.start_ever, offset)
        self.start = self.end = self.high_watermark = offset
        self._recompute()
        self.synced_end = 0

    def move_start(self, offset: int) -> None:
        """Delete what is below `offset`."""
        self.start = offset
        self.start_max = max(self.start_max, offset)
        self.start_ever = max(self.start_ever, offset)

    def set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        self.high_watermark_ever = max(self.high_watermark_ever, offset)

    def stage(self, stored: list[Batch], *others: list[Batch]) -> None:
        """Take what the log will store once a compaction is swapped in, and what else a start may find."""
        self.staged = [State(one, self.history) for one in (stored, *others)]

    def swap(self) -> None:
        """Take notice that it was swapped in."""
        self._set_aside()
        self.others += self.staged[1:]
        self.stored = self.staged[0].stored
        self.compacted_end = self.high_watermark_ever
        self.staged = []
        self.is_compacted = True

    def sync_up_to(self, offset: int) -> None:
        """Take notice that everything below `offset` was promised to last."""
        self.synced_end = max(self.synced_end, min(offset, self._stored_end()))

    def adopt(self, state: State, found: Sequence[Batch], start: int, end: int, high_watermark: int) -> None:
        """Take what a restart has found, of the state that it was judged to be."""
        if state.stored != state.history:
            self.is_compacted = True
            self.compacted_end = self.high_watermark_ever
        found_end = found[-1].last_offset + 1 if found else start
        self.history = [batch for batch in state.history if batch.last_offset < found_end]
        deleted = [batch for batch in state.stored if batch.last_offset < start]
        self.stored = deleted + [batch for batch in found if batch.last_offset >= start]
        self.start = self.start_max = start
        self.end = end
        self.high_watermark = high_watermark
        self.others = []
        self.staged = []
        self._recompute()

    def visible(self) -> list[Batch]:
        """Return the stored batches that reach above the log start."""
        return self.stored[bisect_right(self.stored, self.start - 1, key=_last_offset) :]

    def _set_aside(self) -> None:
        self.others.append(State(list(self.stored), list(self.history)))

    def _stored_end(self) -> int:
        """Return where the log ends after a restart: if it ends within a gap, before that."""
        return self.stored[-1].last_offset + 1 if self.stored else 0

    def _recompute(self) -> None:
        self.replay = Replay(self.history)
        self.high_watermark = max(self.start, min(self.high_watermark, self.end))
        self.synced_end = min(self.synced_end, self._stored_end())
        self.is_rebuilt = True


def _last_offset(batch: Batch) -> int:
    return batch.last_offset
