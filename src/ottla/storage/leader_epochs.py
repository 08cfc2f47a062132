"""Which leader epoch started where: what a follower needs to find out where its log departs (KIP-101).

Entries ascend in both epoch and start offset. Writing `leader-epoch-checkpoint` is the log's; it need not
happen before a batch is acknowledged from memory, since recovery finds the epochs in the batches, but before
the recovery point passes them.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from ottla.model.ids import NO_LEADER_EPOCH, NO_OFFSET, LeaderEpoch, Offset
from ottla.storage.log_dirs.checkpoints import EpochEntry

UNKNOWN: Final = EpochEntry(NO_LEADER_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """The epochs of one log. `latest` is the newest, or -1."""

    __slots__ = ("_doubtful", "_known_to", "_suspected", "entries", "latest", "recovered_to")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        """Take entries in any order of trust: of a contradiction the later entry is believed."""
        self.entries: list[EpochEntry] = []
        self.latest = NO_LEADER_EPOCH
        # Entries of the file that no sync covered, until the batches are seen to bear them out.
        self._doubtful: dict[LeaderEpoch, Offset] = {}
        # Below this the file is known to have all epochs, so a batch that says otherwise may be damaged.
        self._known_to = Offset(0)
        self._suspected: tuple[LeaderEpoch, Offset, Offset] | None = None
        # The offset after the last batch that was recovered.
        self.recovered_to = Offset(0)
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> bool:
        """Note that `epoch` starts at `start_offset`. Says whether that was news.

        Entries that contradict it (a later epoch, or a later start) are from a history that was truncated.

        Deviation: an earlier start of the same epoch contradicts nothing. Kafka forgets it if a later epoch
        is forgotten, and would then say of the epoch before that it ended too late.
        """
        entries = self.entries
        if epoch < 0 or (entries and epoch == self.latest and start_offset >= entries[-1].start_offset):
            return False
        while entries and (entries[-1].epoch > epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        if not entries or entries[-1].epoch < epoch:
            entries.append(EpochEntry(epoch, start_offset))
        self.latest = epoch
        return True

    def doubt_from(self, offset: Offset) -> None:
        """Forget the epochs that start at or after `offset`, unless `assign_recovered` bears them out."""
        self._doubtful = {entry.epoch: entry.start_offset for entry in self.entries}
        self.truncate_from_end(offset)

    def believe_up_to(self, offset: Offset) -> None:
        """Take the epochs that start below `offset` for all there are: they were synced with the batches."""
        self._known_to = offset if self.entries else Offset(0)

    def assign_recovered(self, epoch: LeaderEpoch, earliest: Offset, base_offset: Offset) -> None:
        """Note an epoch that recovery met first in the batch at `base_offset`, with none since `earliest`.

        Compaction may have taken the batch that the epoch started with. So a start before the batch is
        believed, if the file has one that lies where no batch is left.

        Deviation: Kafka believes each batch. But no checksum covers its epoch. With one that is damaged a
        replica would ask its leader for what comes after an epoch that nobody knows, for ever. So where the
        file should know better, a second batch has to say the same.
        """
        if base_offset < self._known_to:
            if self._suspected is None or self._suspected[0] != epoch:
                self._suspected = (epoch, earliest, base_offset)
                return
            _, earliest, base_offset = self._suspected
        start_offset = self._doubtful.get(epoch, base_offset)
        self.assign(epoch, start_offset if earliest <= start_offset <= base_offset else base_offset)

    def end_offset_for(self, epoch: LeaderEpoch, log_end_offset: Offset) -> EpochEntry:
        """Return the largest known epoch up to `epoch`, and where it ended (see KIP-101, KIP-279)."""
        entries = self.entries
        if epoch < 0 or not entries or epoch > self.latest:
            return UNKNOWN
        if epoch == self.latest:
            return EpochEntry(epoch, log_end_offset)
        after = bisect_right(entries, epoch, key=_epoch_of)
        if after == 0:
            # Older than all that is known: its records, if there were any, ended where ours begin.
            return EpochEntry(epoch, entries[0].start_offset)
        return EpochEntry(entries[after - 1].epoch, entries[after].start_offset)

    def epoch_for(self, offset: Offset) -> LeaderEpoch:
        """Return the epoch under which `offset` was or would be appended, or -1."""
        entries = self.entries
        if entries and entries[-1].start_offset <= offset:
            return self.latest
        after = bisect_right(entries, offset, key=_start_offset_of)
        return entries[after - 1].epoch if after else NO_LEADER_EPOCH

    def truncate_from_end(self, log_end_offset: Offset) -> bool:
        """Forget the epochs that start at or after `log_end_offset`. Says whether there were any."""
        entries = self.entries
        if not entries or entries[-1].start_offset < log_end_offset:
            return False
        while entries and entries[-1].start_offset >= log_end_offset:
            entries.pop()
        self.latest = entries[-1].epoch if entries else NO_LEADER_EPOCH
        return True

    def truncate_from_start(self, log_start_offset: Offset) -> bool:
        """Forget the epochs that ended at or before `log_start_offset`. Says whether anything changed."""
        entries = self.entries
        passed = bisect_right(entries, log_start_offset, key=_start_offset_of)
        if passed == 0 or (passed == 1 and entries[0].start_offset == log_start_offset):
            return False
        entries[:passed] = [EpochEntry(entries[passed - 1].epoch, log_start_offset)]
        return True


def _epoch_of(entry: EpochEntry) -> LeaderEpoch:
    return entry.epoch


def _start_offset_of(entry: EpochEntry) -> Offset:
    return entry.start_offset
