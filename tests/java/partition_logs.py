"""Asks Apache Kafka's own log classes what they find in a partition's directory, and lets them compact it.

The same Java process runs Kafka's `DumpLogSegments`, since starting one for each run takes seconds.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.java.jars import compiled, java_command

_CLASS = "org.apache.kafka.storage.internals.log.PartitionLogs"


class Refused(Exception):
    """Kafka could not open or clean the directory."""


class Round(NamedTuple):
    """One round of cleaning, as Kafka's cleaner is to do it."""

    now_ms: int
    checkpoint: int | None = None
    map_entries: int = 100_000


class PartitionLogs:
    """A Java process that answers one question at a time. It changes the directories as a broker would."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("PartitionLogs.java"), _CLASS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

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
    ) -> dict[str, Any]:
        """Have Kafka load a partition's directory, clean it if asked to, close it, and say what it found."""
        question: dict[str, Any] = {
            "directory": str(directory),
            "now_ms": now_ms,
            "is_clean": is_clean,
            "recovery_point": recovery_point,
            "log_start_offset": log_start_offset,
            "config": dict(config or {}),
        }
        if clean is not None:
            question["clean"] = clean._asdict()
        return self._ask(question, str(directory))

    def dump(self, files: Iterable[Path], *options: str) -> str:
        """Run Kafka's `DumpLogSegments` on files and return what it prints."""
        arguments = ["--files", ",".join(str(path) for path in files), *options]
        output: str = self._ask({"dump": arguments}, "DumpLogSegments")["output"]
        return output

    def _ask(self, question: dict[str, Any], subject: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the Java process ended"}
        if "error" in answer:
            raise Refused(f"{subject}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
