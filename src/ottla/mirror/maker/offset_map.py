"""Which offset of the target corresponds to an offset of the source, for one partition.

A run is a number of records that lie side by side in both logs. Markers of transactions, aborted records and
compaction lie between runs. An offset inside a run is translated exactly. Any other offset becomes the place
after the run before it: a group that goes on there misses nothing, and repeats nothing unless older runs were
forgotten.
"""

from bisect import bisect_right
from typing import Final, NamedTuple

_RUNS_MAX: Final = 1024


class Run(NamedTuple):
    """`length` records, at consecutive offsets on both sides."""

    upstream: int
    downstream: int
    length: int = 1

    def joined(self, run: "Run") -> "Run | None":
        """Return both as one, if the other one follows directly."""
        if run[:2] != (self.upstream + self.length, self.downstream + self.length):
            return None
        return self._replace(length=self.length + run.length)


class OffsetMap:
    """The runs of one partition, in order. Old ones are thinned out, so that their number is bounded."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, run: Run) -> None:
        """Take note of records that were copied, or of a single one that is known from an offset sync."""
        if self._runs:
            last = self._runs[-1]
            if run.upstream < last.upstream or run.downstream < last.downstream:
                # One of the topics was made again: what was known is not true any more.
                self._runs.clear()
            elif run.upstream < last.upstream + last.length:
                return
            elif (joined := last.joined(run)) is not None:
                self._runs[-1] = joined
                return
        self._runs.append(run)
        if len(self._runs) > _RUNS_MAX:
            # The ends stay: the first is the beginning of the copy, and the newest are asked for most.
            older = _RUNS_MAX // 2
            self._runs[1:older] = self._runs[1:older:2]

    def translate(self, upstream: int) -> int | None:
        """Return where a reader goes on in the target; None for an offset before everything known."""
        at = bisect_right(self._runs, upstream, key=lambda run: run.upstream) - 1
        if at < 0:
            return None
        run = self._runs[at]
        return run.downstream + min(upstream - run.upstream, run.length)
