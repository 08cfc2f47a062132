"""Putting sound batches in the place of damage in one log, by a worker beside the event loop."""

from collections.abc import Callable

from ottla.broker.logs.swap_round import SwapRound
from ottla.records.batch import HEADER_BYTES
from ottla.storage.damages.checking import check_segment, plan_check
from ottla.storage.damages.splicing import Splice, keep_damage, read_damage, write_again, write_over
from ottla.storage.deletion import Deletion
from ottla.storage.log import Log
from ottla.world.workers import Steps, Workers


class HealingRound(SwapRound):
    """One damaged range of one log."""

    def __init__(
        self, workers: Workers, remove_later: Callable[[Deletion], None], log: Log, splice: Splice
    ) -> None:
        super().__init__(workers, remove_later, log)
        self._splice = splice
        self._check = plan_check(log, splice.range.first_offset)
        # Where the damaged bytes are now.
        self.kept = ""
        self.is_done = False
        # What was found to be damaged is not, or not any more: the segment is another one now.
        self.is_stale = False
        # Whether the indexes may lack what lies behind the damage: it could not be walked over.
        self.hid_batches = False

    def work(self) -> Steps:
        """Keep the damaged bytes, and write the sound ones."""
        splice, disk = self._splice, self.log.volume.disk
        if not splice.range.is_bridged:
            if not self._is_damaged_still():
                self.is_stale = True
                return
            self.kept = keep_damage(disk, splice)
        if splice.fits:
            self.hid_batches = read_damage(disk, splice)[:HEADER_BYTES] != splice.content[:HEADER_BYTES]
            write_over(disk, splice)
            self.is_done = True
            return
        yield from self.swap((write_again(disk, splice),), (splice.range.base_offset,))
        self.is_done = self.has_swapped

    def _is_damaged_still(self) -> bool:
        """Look again: compaction may have put another file there since. Nothing sound is written over."""
        segments, epochs, _ = self._check
        for segment in segments:
            for step in check_segment(self.log.volume.disk, segment, epochs):
                if not isinstance(step, int) and self._splice.range in step:
                    return True
        return False
