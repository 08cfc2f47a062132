"""The metadata logs and snapshots of the golden directories, read by us and as Kafka's own tool dumped
them."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.golden.directories import DATA, golden_directory, names_within

from ottla.quorum.batches import MetadataBatch, decode_batch
from ottla.records.batch import iter_batches
from ottla.wire.declare import replace
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.controllers import RegisterControllerRecord

SINGLE_NODES = ("01-clean", "02-compacted", "03-killed9")
CLUSTER_NODES = ("node1-a", "node2-a", "node3-a", "node4-a")


NAMES = (*SINGLE_NODES, *(f"04-cluster.{node}" for node in CLUSTER_NODES))
"""Every metadata log of the archives."""


def metadata_directory(name: str) -> Path:
    """Return the directory of a metadata log."""
    return golden_directory(name.partition(".")[0]) / _within(name)


def snapshot_names(name: str) -> list[str]:
    """Return the names of the snapshots beside a metadata log, without unpacking anything."""
    archive = name.partition(".")[0]
    paths = (Path(path) for path in names_within(archive))
    return sorted(
        path.name for path in paths if path.parent == archive / _within(name) and path.suffix == ".checkpoint"
    )


def _within(name: str) -> Path:
    return Path(name.partition(".")[2]) / "__cluster_metadata-0"


def read_batches(*files: Path) -> list[MetadataBatch]:
    """Read all batches of some files."""
    return [decode_batch(raw) for file in files for raw in iter_batches(memoryview(file.read_bytes()))]


def read_log(directory: Path) -> list[MetadataBatch]:
    """Read all segments of a metadata log."""
    return read_batches(*sorted(directory.glob("*.log")))


def dumped_records(archive: str) -> dict[str, list[dict[str, Any]]]:
    """Return the payloads that Kafka's DumpLogSegments printed, by file."""
    text = gzip.decompress((DATA / f"{archive}.cluster-metadata.txt.gz").read_bytes()).decode()
    payloads: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        if line.startswith("Dumping "):
            current = payloads.setdefault(line.removeprefix("Dumping ").split("/", 1)[1], [])
        elif line.startswith("| payload: "):
            current.append(json.loads(line.removeprefix("| payload: ")))
    return payloads


def in_no_order(records: Iterable[Any]) -> Counter[str]:
    """Count records, without the order that Kafka takes from its hash maps."""
    return Counter(repr(_sorted_parts(record)) for record in records)


def _sorted_parts(record: Any) -> Any:
    if isinstance(record, (RegisterBrokerRecord, RegisterControllerRecord)):
        features = tuple(sorted(record.features, key=repr))
        endpoints = tuple(sorted(record.endpoints, key=repr))
        return replace(record, features=features, endpoints=endpoints)
    return record


def data_records(batches: Iterable[MetadataBatch]) -> Iterator[Any]:
    """Give the metadata records, without control records."""
    for batch in batches:
        if not batch.is_control:
            yield from batch.records
