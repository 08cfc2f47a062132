"""What the log adds to the system call: CPU of an append beside that of a bare `pwrite`, and of a look-up.

An append takes the batch of an idempotent producer: header, checksum, sequence, offsets, one write, and an
index entry when it is due. The bare `pwrite` writes the same bytes to a file in the same directory. Blocks of
both alternate, and CPU time of the process is counted, user and kernel, so others on the machine matter less.

The look-up asks for random offsets in a segment of 1 GiB. That is a binary search in the index and a scan of
up to one index interval, by `pread` from the page cache.
"""

import os
from random import Random
from typing import Final

from benchmarks.log_world import Scratch, append, make_batch
from benchmarks.measure import Noise, cpu_seconds, ratio_of, verdict

from ottla.model.ids import Offset
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit

APPEND_GOAL: Final = 1.6
LOOK_UP_GOAL_US: Final = 30.0

_BATCH_BYTES: Final = 16 << 10
_BLOCK_APPENDS: Final = 400
_BLOCKS: Final = 25
_SEGMENT_BYTES: Final = 1 << 30
_LOOK_UPS: Final = 4_000


def measure_append(scratch: Scratch) -> str:
    """Compare appends with bare writes, block by block."""
    log = scratch.create_log("appends", 0)
    descriptor = os.open(scratch.path / "bare", os.O_RDWR | os.O_CREAT)
    noise = Noise()
    ours: list[float] = []
    theirs: list[float] = []
    sequence = position = 0
    for _ in range(_BLOCKS):
        batches = [
            make_batch(_BATCH_BYTES, producer_id=1, base_sequence=sequence + index)
            for index in range(_BLOCK_APPENDS)
        ]
        sequence += _BLOCK_APPENDS
        copies = [bytes(batch) for batch in batches]
        theirs.append(cpu_seconds(lambda: _write_bare(descriptor, copies, position)))  # noqa: B023
        position += _BLOCK_APPENDS * _BATCH_BYTES
        ours.append(cpu_seconds(lambda: _append_all(log, batches)))  # noqa: B023
    os.close(descriptor)
    ratio = ratio_of(ours, theirs)
    each_us = [sorted(blocks)[_BLOCKS // 2] / _BLOCK_APPENDS * 1e6 for blocks in (ours, theirs)]
    return (
        f"append of a 16 KB batch, CPU beside a bare pwrite: {ratio} times, "
        f"{each_us[0]:.1f} us beside {each_us[1]:.1f} us; "
        f"goal <= {APPEND_GOAL}: {verdict(ratio.middle <= APPEND_GOAL)}; noise {noise.share():.0%}"
    )


def _append_all(log: Log, batches: list[bytearray]) -> None:
    for batch in batches:
        append(log, batch)


def _write_bare(descriptor: int, batches: list[bytes], position: int) -> None:
    for batch in batches:
        os.pwrite(descriptor, batch, position)
        position += len(batch)


def measure_look_up(scratch: Scratch) -> str:
    """Look up random offsets in one large segment."""
    log = scratch.create_log("look-ups", 0)
    batch = make_batch(_BATCH_BYTES)
    while log.active_segment.size < _SEGMENT_BYTES - _BATCH_BYTES:
        append(log, bytearray(batch))
    assert len(log.segments) == 1, "one segment was to be filled"
    log.update_high_watermark(log.log_end_offset)
    rng = Random(1)
    noise = Noise()
    figures: list[float] = []
    for _ in range(5):
        offsets = [Offset(rng.randrange(log.log_end_offset)) for _ in range(_LOOK_UPS)]
        figures.append(cpu_seconds(lambda: _look_up_all(log, offsets)) / _LOOK_UPS * 1e6)  # noqa: B023
    middle = sorted(figures)[2]
    size_gib = log.active_segment.size / (1 << 30)
    return (
        f"look-up by offset in a segment of {size_gib:.2f} GiB, CPU: {middle:.1f} us "
        f"({min(figures):.1f} to {max(figures):.1f}); "
        f"goal < {LOOK_UP_GOAL_US:.0f}: {verdict(middle < LOOK_UP_GOAL_US)}; noise {noise.share():.0%}"
    )


def _look_up_all(log: Log, offsets: list[Offset]) -> None:
    for offset in offsets:
        assert log.read(offset, 1 << 20, ReadLimit.HIGH_WATERMARK).length


def main() -> None:
    with Scratch() as scratch:
        print(measure_append(scratch), flush=True)
        print(measure_look_up(scratch), flush=True)


if __name__ == "__main__":
    main()
