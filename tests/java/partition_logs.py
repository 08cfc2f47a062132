"""Asks Apache Kafka's own log classes what they find in a partition's directory, and lets them compact it.

Kafka's `DumpLogSegments` is asked in the same way.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.java.oracle import Oracle

from ottla.records.batch import iter_batches
from ottla.records.compression import decompress
from ottla.records.errors import RecordsError

_INDEXES = frozenset((".index", ".timeindex"))
"""Made from logs. They may be large, and empty."""


class Refused(Exception):
    """Kafka could not open or clean the directory."""


class Round(NamedTuple):
    """One round of cleaning, as Kafka's cleaner is to do it."""

    now_ms: int
    checkpoint: int | None = None
    map_entries: int = 100_000


class PartitionLogs:
    """Kafka's classes. They change directories as a broker would."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def open(
        self,
        directory: Path,
        *,
        now_ms: int,
        is_clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        config: Mapping[str, str] | None = None,
        clean: Round | None = None,
        tells_files: bool = True,
    ) -> dict[str, Any]:
        """Have Kafka load a partition's directory, clean it if asked to, close it, and say what it found.

        The files are then as Kafka left them, if `tells_files`. Else only Kafka itself would change them.
        """
        question: dict[str, Any] = {
            "directory": str(directory),
            "content": _digest(sorted(directory.iterdir())),
            "now_ms": now_ms,
            "is_clean": is_clean,
            "recovery_point": recovery_point,
            "log_start_offset": log_start_offset,
            "config": dict(config or {}),
            "tells_files": tells_files,
        }
        if clean is not None:
            question["clean"] = clean._asdict()
        answer = self._ask(question, directory)
        for name, content in answer.pop("files", {}).items():
            if content is None:
                (directory / name).unlink(missing_ok=True)
            else:
                (directory / name).write_bytes(bytes.fromhex(content))
        return answer

    def dump(self, files: Iterable[Path], *options: str) -> str:
        """Run Kafka's `DumpLogSegments` on files and return what it prints."""
        paths = list(files)
        question = {
            "dump": ["--files", ",".join(map(str, paths)), *options],
            "content": _digest(paths),
        }
        output: str = self._ask(question, Path(os.path.commonpath([path.parent for path in paths])))["output"]
        return output

    def _ask(self, question: dict[str, Any], place: Path) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._oracle.ask("PartitionLogs", json.dumps(question), place))
        if "error" in answer:
            raise Refused(f"{place}: {answer['error']}")
        return answer


def _digest(files: Iterable[Path]) -> str:
    """Return a hash over what files mean: compressed bytes are up to the libraries of a machine."""
    found = hashlib.blake2b(digest_size=8)
    for path in files:
        found.update(f"{path.name} {path.stat().st_size if path.suffix in _INDEXES else 0}".encode())
        if path.suffix in _INDEXES:
            continue
        content = path.read_bytes()
        if path.suffix != ".log":
            found.update(content)
            continue
        try:
            found.update(_meaning(content))
        except RecordsError:
            found.update(content)
    return found.hexdigest()


def _meaning(content: bytes) -> bytes:
    parts = []
    for batch in iter_batches(memoryview(content)):
        header = batch.header
        parts.append(repr(header._replace(batch_length=0, crc=0)).encode())
        parts.append(decompress(header.codec, batch.records_bytes) if header.count else b"")
    return b"".join(parts)
