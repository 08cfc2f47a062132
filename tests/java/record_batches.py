"""Asks Apache Kafka's own classes to read, write and filter record batches."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from tests.java.jars import compiled, java_command

from ottla.records.attributes import Codec
from ottla.records.codec import Record


class Refused(Exception):
    """Kafka's classes threw an exception."""


class RecordBatches:
    """A Java process that answers one question at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("RecordBatches.java"), "RecordBatches"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def read(self, data: bytes | bytearray | memoryview) -> list[dict[str, Any]]:
        """Return what Kafka sees in some batches."""
        batches: list[dict[str, Any]] = self._ask("read", data=data.hex())["batches"]
        return batches

    def write(
        self,
        records: Sequence[Record],
        *,
        base_offset: int = 0,
        leader_epoch: int = -1,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        append_time: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        delete_horizon_ms: int | None = None,
    ) -> bytes:
        """Return the batch that Kafka builds. Takes what our `build_batch` takes."""
        return self._written(
            "write",
            records=[_described(record) for record in records],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            codec=codec.name.lower(),
            level=level,
            append_time=append_time,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
            is_control=is_control,
            delete_horizon_ms=delete_horizon_ms,
        )

    def write_marker(
        self,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        base_offset: int,
        timestamp: int,
        leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
    ) -> bytes:
        """Return the batch that Kafka writes at the end of a transaction."""
        return self._written(
            "marker",
            is_commit=is_commit,
            coordinator_epoch=coordinator_epoch,
            base_offset=base_offset,
            timestamp=timestamp,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )

    def filter(
        self,
        data: bytes | bytearray,
        *,
        kept: Iterable[int],
        retain_empty: bool,
        now: int,
        delete_retention: int,
    ) -> bytes:
        """Return what Kafka's log cleaner makes of batches, given the offsets it is to keep."""
        return self._written(
            "filter",
            data=data.hex(),
            kept=list(kept),
            retain_empty=retain_empty,
            now=now,
            delete_retention=delete_retention,
        )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _written(self, op: str, **arguments: object) -> bytes:
        return bytes.fromhex(self._ask(op, **arguments)["data"])

    def _ask(self, op: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the Java process ended"
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer


def _described(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": [[key, None if value is None else value.hex()] for key, value in record.headers],
    }
