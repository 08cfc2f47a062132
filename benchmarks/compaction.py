"""How many bytes of a log one core compacts in a second.

A round reads the dirty part of a log twice, to fill the offset map and to clean, and writes what stays. What
is counted is the log that went in, once, against the CPU seconds of all of it, kernel included. Records have
1 KB and come 16 to a batch. `superseded` is the share of records that a newer one displaces: with none every
batch is copied as it is, with half of them nearly every batch has to be written again.

    python -m benchmarks.compaction
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Final, NamedTuple

from benchmarks.measure import Noise, verdict
from tests.unit.storage.compaction.whole_round import run_round

from ottla.model.ids import Offset, TopicPartition
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.runtime.disk import RealDisk
from ottla.storage.compaction.candidates import find_candidate
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.volume import Volume

GOAL_MB_PER_SECOND: Final = 150

_LOG_BYTES: Final = 96 << 20
_RECORD_BYTES: Final = 1000
_RECORDS_PER_BATCH: Final = 16
_SEGMENT_BYTES: Final = 32 << 20
_MEMORY_BYTES: Final = 128 << 20
_RUNS: Final = 3
_NOW_MS: Final = 1_700_000_000_000


class Case(NamedTuple):
    """A log to compact. Without a goal its figure is for comparison only."""

    title: str
    codec: Codec
    superseded: float
    goal: int | None


CASES: Final = (
    Case("compaction, 1 KB records, half superseded", Codec.NONE, 0.5, GOAL_MB_PER_SECOND),
    Case("compaction, 1 KB records, none superseded", Codec.NONE, 0.0, GOAL_MB_PER_SECOND),
    Case("compaction, 1 KB records, half superseded, lz4", Codec.LZ4, 0.5, None),
    Case("compaction, 1 KB records, none superseded, lz4", Codec.LZ4, 0.0, None),
)


class Row(NamedTuple):
    """MB of log per CPU second: the middle of some runs, the worst, the best."""

    title: str
    middle: float
    low: float
    high: float
    goal: int | None
    noise: float

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.middle >= self.goal

    def __str__(self) -> str:
        goal = "for comparison" if self.goal is None else f"goal {self.goal}: {verdict(self.is_met)}"
        figure = f"{self.middle:6.0f} MB/s per core ({self.low:.0f} to {self.high:.0f})"
        return f"{self.title:<52} {figure}, {goal}; noise {self.noise:.0%}"


def rows() -> list[Row]:
    """Measure every case."""
    return [_measure(case) for case in CASES]


def _measure(case: Case) -> Row:
    noise = Noise()
    figures: list[float] = []
    with _written(case) as original:
        for run in range(_RUNS):
            directory = original.parent / f"run-{run}" / "orders-0"
            shutil.copytree(original, directory)
            log = _load(directory)
            candidate = find_candidate(log, Offset(0), _NOW_MS)
            start = process_time()
            run_round(candidate, _NOW_MS, _MEMORY_BYTES)
            figures.append(candidate.cleanable_bytes / 1e6 / (process_time() - start))
            shutil.rmtree(directory.parent)
    return Row(case.title, median(figures), min(figures), max(figures), case.goal, noise.share())


@contextmanager
def _written(case: Case) -> Iterator[Path]:
    """Write a log, segment by segment, as a producer's batches would have filled it."""
    root = Path(tempfile.mkdtemp(prefix="bench-compaction-"))
    directory = root / "original" / "orders-0"
    directory.mkdir(parents=True)
    random = Random(1)
    count = _LOG_BYTES // _RECORD_BYTES
    keys = [b"customer-%08d" % random.randrange(max(1, count // 2)) for _ in range(count)]
    if case.superseded == 0:
        keys = [b"customer-%08d" % number for number in range(count)]
    # Text that compresses to about a half.
    values = [random.randbytes(_RECORD_BYTES // 2).hex().encode() for _ in range(64)]
    try:
        offset = 0
        while offset < count:
            offset = _write_segment(directory, case.codec, keys, values, offset)
        _write_segment(directory, case.codec, keys[:16], values, offset)
        yield directory
    finally:
        shutil.rmtree(root)


def _write_segment(
    directory: Path, codec: Codec, keys: list[bytes], values: list[bytes], base_offset: int
) -> int:
    """Write one segment and return the offset after it."""
    offset = base_offset
    size = 0
    with (directory / f"{base_offset:020d}.log").open("wb") as file:
        while size < _SEGMENT_BYTES:
            numbers = range(offset, min(offset + _RECORDS_PER_BATCH, max(len(keys), base_offset + 16)))
            if not numbers:
                break
            records = [
                Record(number, _NOW_MS + number, keys[number % len(keys)], values[number % len(values)])
                for number in numbers
            ]
            size += file.write(build_batch(records, base_offset=offset, codec=codec))
            offset = numbers.stop
    return offset


def _load(directory: Path) -> Log:
    config = LogConfig(is_compacted=True, is_deleted=False, segment_bytes=1 << 30)
    request = LoadRequest(str(directory), TopicPartition("orders", 0), config, now_ms=_NOW_MS)
    log = load_log(Volume(RealDisk(), str(directory.parent)), request)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
