"""Data directories that Apache Kafka 4.3.1 wrote, as archives under `data/`.

    00-fresh-format   formatted, never started
    01-clean          all kinds of topics, every codec, transactions; shut down cleanly before any compaction
    02-compacted      the same after compaction
    03-killed9        the same, killed: indexes still padded with zeros, no clean-shutdown file
    04-cluster        three nodes with two log directories each
    05-torn           03-killed9 with damaged log ends
    06-legacy         messages of format 0 and 1, one directory for each format and codec
    07-tombstones     compacted with delete horizons and emptied batches

The files beside them, `<archive>.<what>.txt.gz`, are what Kafka's own `DumpLogSegments` prints of the
directories, and `manifest.json.gz` lists topics, offsets and checkpoints.
"""

import atexit
import gzip
import json
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
ARCHIVES = tuple(sorted(path.name.removesuffix(".tar.gz") for path in DATA.glob("*.tar.gz")))


@cache
def golden_directory(name: str) -> Path:
    """Return an unpacked archive. It is unpacked once per test process: read it, do not change it."""
    scratch = Path(tempfile.mkdtemp(prefix=f"golden-{name}-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return unpack(name, scratch)


def unpack(name: str, destination: Path) -> Path:
    """Unpack an archive into `destination`, for a test that changes it. Times and holes are kept."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        # Python knows of filters since 3.11.4, and 3.11.2 is still in use.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(destination, filter="data")
        else:
            archive.extractall(destination)
    return destination / name


def names_within(name: str) -> list[str]:
    """Return the paths of all files in an archive, without unpacking it."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        return [member.name for member in archive if member.isfile()]


def log_files(name: str) -> list[Path]:
    """Return all files of an archive that hold record batches: segments and snapshots of the quorum."""
    directory = golden_directory(name)
    return sorted(path for suffix in ("log", "checkpoint") for path in directory.rglob(f"*.{suffix}"))


@cache
def manifest() -> dict[str, Any]:
    """Return what is known of the archives."""
    known: dict[str, Any] = json.loads(gzip.decompress((DATA / "manifest.json.gz").read_bytes()))
    return known
