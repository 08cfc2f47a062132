"""Decodes spoilt frames of all APIs, versions and both directions: only typed errors may come of it.

    python -m tests.fuzz.hostile_frames --frames 1000000 --seed 7

No decode may take longer than 100 ms of CPU time, nor more than 64 MiB of memory. A spoilt frame that decodes
nevertheless says something, and that must survive being written and read again.
A failure names the seed and the number of the frame, which is all that is needed to see it again.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.mutations import mutate
from tests.golden.frames import load_frames
from tests.support.declarations import populated

from ottla.wire.apis import REMOVED, Api, ApiKey, api_of
from ottla.wire.codec import decode, encode
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import decode_request, decode_response, encode_request, encode_response

DECODE_SECONDS_MAX = 0.1
GROWTH_BYTES_MAX = 64 << 20
REQUEST_HEADER_BYTES = 14
RESPONSE_HEADER_BYTES = 5


@dataclass(frozen=True)
class Seed:
    """A frame that is right, to be spoilt."""

    api: Api
    version: int
    is_request: bool
    payload: bytes

    def __str__(self) -> str:
        return f"{self.api.key.name} v{self.version} {'request' if self.is_request else 'response'}"


@dataclass
class Report:
    """What came of a run."""

    frames: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    most_growth_bytes: int = 0


class Unsafe(AssertionError):
    """A frame did what no frame may do."""


def run(frames: int, seed: int, trace_memory: bool = False) -> Report:
    """Decode this many spoilt frames."""
    report = Report()
    for seeds in seed_frames().values():
        # What is not spoilt must decode. It also compiles all codecs before anything is measured.
        _decode(seeds[0], seeds[0].payload)
    if trace_memory:
        tracemalloc.start()
    try:
        for number, (origin, payload) in enumerate(spoilt_frames(frames, seed)):
            try:
                _decode_one(origin, payload, report, trace_memory)
            except Exception as error:
                raise Unsafe(f"seed {seed}, frame {number}, {origin}: {error!r}\n{payload.hex()}") from error
    finally:
        tracemalloc.stop()
    return report


def spoilt_frames(frames: int, seed: int) -> Iterator[tuple[Seed, bytes]]:
    """Return spoilt frames and what each was made of, evenly over all APIs, versions and directions."""
    random = Random(seed)
    seeds = seed_frames()
    kinds = list(seeds)
    others = [frame.payload for frame in load_frames()]
    for number in range(frames):
        origin = random.choice(seeds[kinds[number % len(kinds)]])
        keep = REQUEST_HEADER_BYTES if origin.is_request else RESPONSE_HEADER_BYTES
        yield origin, mutate(origin.payload, random, others, keep)


@cache
def seed_frames() -> dict[tuple[int, int, bool], list[Seed]]:
    """Return frames that are right: those recorded, and for each API and version one with every field set."""
    seeds: dict[tuple[int, int, bool], list[Seed]] = {}
    for key in ApiKey:
        if key in REMOVED:
            continue
        api = api_of(key)
        for version in api.versions.all:
            request = encode_request(populated(api.request, version), api, version, 1, "fuzz")
            response = encode_response(populated(api.response, version), api, version, 1)
            seeds[key, version, True] = [Seed(api, version, True, request[4:])]
            seeds[key, version, False] = [Seed(api, version, False, response[4:])]
    for frame in load_frames():
        seed = Seed(api_of(frame.api_key), frame.version, frame.is_request, frame.payload)
        seeds[frame.api_key, frame.version, frame.is_request].append(seed)
    return seeds


def _decode(origin: Seed, payload: bytes) -> tuple[int, Any]:
    """Return the message, and the version it turned out to have: a spoilt header may name another."""
    if origin.is_request:
        head, request = decode_request(payload)
        return head.version, request
    return origin.version, decode_response(origin.api, origin.version, payload)[1]


def _decode_one(origin: Seed, payload: bytes, report: Report, trace_memory: bool) -> None:
    if trace_memory:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
    # CPU time of this thread: a busy machine must not fail the run.
    started = time.thread_time()
    version, message = origin.version, None
    try:
        version, message = _decode(origin, payload)
    except MalformedBytes:
        report.refused += 1
    seconds = time.thread_time() - started
    report.frames += 1
    report.slowest_seconds = max(report.slowest_seconds, seconds)
    if seconds > DECODE_SECONDS_MAX:
        raise Unsafe(f"decoding {len(payload)} bytes took {seconds:.3f} s")
    if trace_memory:
        growth = tracemalloc.get_traced_memory()[1] - before
        report.most_growth_bytes = max(report.most_growth_bytes, growth)
        if growth > GROWTH_BYTES_MAX:
            raise Unsafe(f"decoding {len(payload)} bytes took {growth} bytes of memory")
    if message is not None:
        written = encode(message, version)
        if encode(decode(type(message), written, version), version) != written:
            raise Unsafe("what was read cannot be written and read again")


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    report = run(options.frames, options.seed)
    print(
        f"{report.frames} spoilt frames over {len(seed_frames())} kinds: {report.refused} refused, "
        f"the others decoded; slowest {report.slowest_seconds * 1000:.1f} ms; "
        f"{time.monotonic() - started:.0f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
