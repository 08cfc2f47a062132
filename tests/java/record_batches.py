"""Asks Apache Kafka's own classes to read, write and filter record batches."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.java.oracle import Oracle

from ottla.records.attributes import Codec
from ottla.records.codec import Record

_LARGE_BYTES = 20_000


class Refused(Exception):
    """Kafka's classes threw an exception."""


class RecordBatches:
    """Kafka's classes, asked one question at a time."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def read(self, data: bytes | bytearray | memoryview) -> list[dict[str, Any]]:
        """Return what Kafka sees in some batches. Of large ones it has `hash_of_records` of the records."""
        brief: dict[str, bool] = {"briefly": True} if len(data) > _LARGE_BYTES else {}
        batches: list[dict[str, Any]] = self._ask("read", data=data.hex(), **brief)["batches"]
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
        briefly: bool = False,
    ) -> bytes:
        """Return the batch that Kafka builds, or its SHA-256. Takes what our `build_batch` takes."""
        return self._written(
            "write",
            **({"briefly": True} if briefly else {}),
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

    def _written(self, op: str, **arguments: object) -> bytes:
        return bytes.fromhex(self._ask(op, **arguments)["data"])

    def _ask(self, op: str, **arguments: object) -> dict[str, Any]:
        question = json.dumps({"op": op, **arguments})
        answer: dict[str, Any] = json.loads(self._oracle.ask("RecordBatches", question))
        if "error" in answer:
            raise Refused(answer["error"])
        return answer


def hash_of_records(described: Sequence[dict[str, Any]]) -> str:
    """Return what Kafka says of the records of a large batch, given what it would say of each."""
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": [[key, None if value is None else value.hex()] for key, value in record.headers],
    }
