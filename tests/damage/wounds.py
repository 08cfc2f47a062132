"""Ways to damage the files of a data directory while no node uses it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from ottla.records.batch import LOG_OVERHEAD
from ottla.storage.names import FileKind, find_segment_file

_UNCHECKED = (*range(8), *range(12, 16))
"""What no checksum covers in a batch: its base offset and its leader epoch."""


class Wound(NamedTuple):
    """What was done to which file. `what` names a way of `WAYS`."""

    path: Path
    what: str

    @property
    def is_of_log(self) -> bool:
        """Say whether it is a segment of a log, not of its indexes."""
        return self.path.suffix == ".log"


def damage(directories: list[Path], rng: Random, *, is_clean: bool) -> Wound:
    """Damage something: a file of any kind, chosen so that no kind is rare.

    Without a clean stop nothing tells that there was a transaction index, so it is left alone then.
    """
    by_kind: dict[str, list[Path]] = {}
    for path in _files(directories):
        if path.suffix == FileKind.TRANSACTION_INDEX.value and not is_clean:
            continue
        by_kind.setdefault(_kind(path), []).append(path)
    while True:
        path = rng.choice(by_kind[rng.choice(sorted(by_kind))])
        what = rng.choice(sorted(WAYS))
        if WAYS[what](path, rng):
            return Wound(path, what)


def _files(directories: list[Path]) -> Iterator[Path]:
    for directory in directories:
        yield from sorted(path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")


def _kind(path: Path) -> str:
    """Return what tells kinds of files apart: their ending or name, and whose they are."""
    of_metadata = path.parent.name.startswith("__cluster_metadata")
    of_coordinator = path.parent.name.startswith("__") and not of_metadata
    owner = "metadata" if of_metadata else "coordinator" if of_coordinator else "data"
    return f"{owner} {path.suffix or path.name}"


def _write(path: Path, content: bytes | bytearray) -> bool:
    stat = path.stat()
    path.write_bytes(content)
    # As it is with a disk that rots: nothing else tells.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return True


def _checked_positions(path: Path, content: bytes) -> list[int]:
    """Return the bytes that something can notice a change of."""
    found = find_segment_file(path.name)
    if found is None or found.kind is not FileKind.LOG:
        return list(range(len(content)))
    unchecked: set[int] = set()
    position = 0
    while position + LOG_OVERHEAD <= len(content):
        unchecked.update(position + one for one in _UNCHECKED)
        position += LOG_OVERHEAD + int.from_bytes(content[position + 8 : position + 12])
    return [one for one in range(len(content)) if one not in unchecked]


def _flip(path: Path, rng: Random) -> bool:
    content = bytearray(path.read_bytes())
    positions = _checked_positions(path, bytes(content))
    if not positions:
        return False
    content[rng.choice(positions)] ^= 1 << rng.randrange(8)
    return _write(path, content)


def _overwrite(path: Path, rng: Random) -> bool:
    """Put random bytes over a part of a file."""
    content = bytearray(path.read_bytes())
    if not content:
        return False
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.randrange(1, 600))
    content[start:end] = rng.randbytes(end - start)
    return _write(path, content)


def _zero(path: Path, rng: Random) -> bool:
    """Put zeros over a part of a file, as a page that was lost."""
    content = bytearray(path.read_bytes())
    if not content:
        return False
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.randrange(1, 4096))
    content[start:end] = bytes(end - start)
    return _write(path, content)


def _garbage(path: Path, rng: Random) -> bool:
    return _write(path, rng.randbytes(rng.choice((path.stat().st_size, rng.randrange(2000)))))


def _cut(path: Path, rng: Random) -> bool:
    content = path.read_bytes()
    return bool(content) and _write(path, content[: rng.randrange(len(content))])


def _empty(path: Path, _rng: Random) -> bool:
    return path.stat().st_size > 0 and _write(path, b"")


def _extend(path: Path, rng: Random) -> bool:
    content = path.read_bytes()
    more = rng.choice((rng.randbytes(rng.randrange(1, 300)), bytes(rng.randrange(1, 300)), content[:500]))
    return bool(more) and _write(path, content + more)


def _remove(path: Path, _rng: Random) -> bool:
    path.unlink()
    return True


def _swap(path: Path, rng: Random) -> bool:
    """Let two files of the same kind change places."""
    others = [other for other in sorted(path.parent.glob(f"*{path.suffix}")) if other != path and path.suffix]
    if not others:
        return False
    other = rng.choice(others)
    first, second = path.read_bytes(), other.read_bytes()
    return first != second and _write(path, second) and _write(other, first)


def _rename(path: Path, rng: Random) -> bool:
    """Give a segment's file the name of another offset."""
    found = find_segment_file(path.name)
    if found is None:
        return False
    offset = max(0, found.offset + rng.choice((-1, 1, 7, 1000)))
    target = path.with_name(f"{offset:020d}{found.kind.value}")
    if target.exists():
        return False
    path.rename(target)
    return True


def _remove_partition(path: Path, _rng: Random) -> bool:
    """Remove the whole directory of a partition."""
    if not path.parent.name.rpartition("-")[2].isdigit():
        return False
    shutil.rmtree(path.parent)
    return True


WAYS: dict[str, Callable[[Path, Random], bool]] = {
    "flip": _flip,
    "overwrite": _overwrite,
    "zero": _zero,
    "garbage": _garbage,
    "cut": _cut,
    "empty": _empty,
    "extend": _extend,
    "remove": _remove,
    "swap": _swap,
    "rename": _rename,
    "remove the partition": _remove_partition,
}
