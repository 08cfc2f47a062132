"""Measuring side by side on a machine that is not ours alone.

What is compared runs in alternating blocks, so that a slow minute hits both. The result is the median of
the ratios of neighbouring blocks, with their spread. Beside every result stands the noise: the share of the
machine's CPU time that other processes took meanwhile. A result with much noise is a hint, not a figure.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

_PROC_STAT = Path("/proc/stat")


class Ratio(NamedTuple):
    """The median of some ratios, and the smallest and largest of them."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f})"


class Noise:
    """The share of CPU time that others took, from making this until `share` is asked."""

    def __init__(self) -> None:
        self._busy, self._total = _machine_ticks()
        self._own = _own_seconds()
        self._start = perf_counter()

    def share(self, children_seconds: float = 0.0) -> float:
        """Return the share, from 0 to 1, of the CPU time of all cores.

        Children that were waited for are no others. `children_seconds` is what those took that still run.
        """
        busy, total = _machine_ticks()
        if total == self._total:
            return 0.0
        seconds_per_tick = (perf_counter() - self._start) * _cores() / (total - self._total)
        others = (busy - self._busy) * seconds_per_tick - (_own_seconds() - self._own) - children_seconds
        return max(0.0, others / ((total - self._total) * seconds_per_tick))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds, in user and kernel, that `work` takes in this process."""
    start = process_time()
    work()
    return process_time() - start


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Compare neighbouring blocks: how many times theirs does ours take?"""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the sorted values do not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def _own_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def _machine_ticks() -> tuple[int, int]:
    """Return busy and total ticks of all cores since the start of the machine."""
    fields = [int(field) for field in _PROC_STAT.read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields)


def _cores() -> int:
    return sum(line.startswith("cpu") and line[3:4].isdigit() for line in _PROC_STAT.read_text().splitlines())
