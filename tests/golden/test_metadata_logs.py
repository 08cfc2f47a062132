"""Metadata logs that Apache Kafka wrote: read, replayed, and written again to the byte."""

from pathlib import Path
from typing import Any

import pytest
from tests.differential.kafka_json import as_kafka_json
from tests.golden.directories import golden_directory
from tests.golden.metadata_logs import (
    NAMES,
    SINGLE_NODES,
    data_records,
    dumped_records,
    in_no_order,
    metadata_directory,
    read_batches,
    read_log,
    snapshot_names,
)
from tests.unit.metadata.images import have_same_content

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import default_levels
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage, Position
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.record_versions import record_version
from ottla.metadata.snapshot_records import snapshot_records
from ottla.model.ids import Offset
from ottla.quorum.batches import MetadataBatch, encode_batch, encode_control_batch
from ottla.quorum.quorum_state import decode_quorum_state, encode_quorum_state
from ottla.quorum.snapshot_file import (
    BOOTSTRAP_FILE,
    FORMAT_SNAPSHOT,
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    find_snapshot_id,
)

SNAPSHOTS = [
    pytest.param(name, snapshot, id=f"{name}-{snapshot}")
    for name in NAMES
    for snapshot in snapshot_names(name)
    if find_snapshot_id(snapshot) != FORMAT_SNAPSHOT
]


def encode_again(batch: MetadataBatch) -> bytearray:
    position = batch.position
    if batch.is_control:
        return encode_control_batch(batch.records, batch.base_offset, position.epoch, position.timestamp_ms)
    return encode_batch(batch.records, 30, batch.base_offset, position.epoch, position.timestamp_ms)


@pytest.mark.parametrize("name", NAMES)
def test_every_batch_is_written_again_to_the_byte(name: str) -> None:
    files = [*metadata_directory(name).glob("*.log"), *metadata_directory(name).glob("*.checkpoint")]
    for path in files:
        written = b"".join(encode_again(batch) for batch in read_batches(path))
        content = path.read_bytes()
        assert content[: len(written)] == written, path
        assert not any(content[len(written) :]), f"{path} has bytes after what was read"


@pytest.mark.parametrize("archive", [*SINGLE_NODES, "04-cluster.node1-a"])
def test_records_are_those_that_kafkas_tool_reads(archive: str) -> None:
    directory = golden_directory(archive.split(".")[0])
    for file, payloads in dumped_records(archive).items():
        ours = list(data_records(read_batches(directory / file)))
        versions = [record_version(record, 30) for record in ours]
        assert versions == [payload["version"] for payload in payloads], file
        as_json = [as_kafka_json(record, version) for record, version in zip(ours, versions, strict=True)]
        assert as_json == [payload["data"] for payload in payloads], file


@pytest.mark.parametrize("name", SINGLE_NODES)
def test_replay_of_a_log_gives_what_kafka_put_into_its_snapshots(name: str) -> None:
    there = metadata_directory(name).glob("*.checkpoint")
    snapshots = {_id_of(path).end_offset: path for path in there if _id_of(path).epoch}
    assert len(snapshots) >= 5
    assert _compare_on_the_way(EMPTY_IMAGE, read_log(metadata_directory(name)), snapshots) == len(snapshots)


def test_replay_from_one_snapshot_to_the_next_gives_what_the_nodes_of_a_cluster_had() -> None:
    directories = [metadata_directory(name) for name in NAMES if name.startswith("04-cluster")]
    log = {batch.base_offset: batch for directory in directories for batch in read_log(directory)}
    snapshots = {_id_of(path).end_offset: path for path in _snapshots_of(directories)}
    first = min(snapshots)
    image = _load(decode_snapshot(snapshots.pop(first).read_bytes(), "first").records)
    image = image._replace(position=Position(Offset(first - 1), 5, 0))
    batches = [log[offset] for offset in sorted(log) if offset >= first]
    assert _compare_on_the_way(image, batches, snapshots) == len(snapshots) == 7


def _compare_on_the_way(
    image: MetadataImage, batches: list[MetadataBatch], snapshots: dict[Offset, Path]
) -> int:
    """Replay batches, and compare with each snapshot where it ends. Returns how many were compared."""
    loader = MetadataLoader(image)
    compared = 0
    for batch in batches:
        if batch.is_control:
            loader.skip(batch.position)
        else:
            loader.feed(batch.records, batch.position)
        path = snapshots.get(Offset(batch.position.offset + 1))
        if path is not None:
            ours = snapshot_records(loader.take()[0])
            assert in_no_order(ours) == in_no_order(decode_snapshot(path.read_bytes(), path.name).records)
            compared += 1
    return compared


@pytest.mark.parametrize(("name", "snapshot_name"), SNAPSHOTS)
def test_snapshot_of_a_loaded_snapshot_has_the_order_kafka_wrote(name: str, snapshot_name: str) -> None:
    path = metadata_directory(name) / snapshot_name
    snapshot = decode_snapshot(path.read_bytes(), path.name)
    image = _load(snapshot.records)
    kinds = [type(record) for record in snapshot_records(image)]
    assert kinds == [type(record) for record in snapshot.records], "kinds come in Kafka's order"
    again = b"".join(
        encode_snapshot(
            snapshot_records(image),
            30,
            _id_of(path).epoch,
            snapshot.last_contained_timestamp_ms,
            snapshot.quorum,
            now_ms=1,
        )
    )
    reread = decode_snapshot(again, path.name)
    assert reread.quorum == snapshot.quorum
    assert have_same_content(_load(reread.records), image)


def test_bootstrap_checkpoint_holds_the_default_levels() -> None:
    for archive in ("00-fresh-format", *SINGLE_NODES):
        content = (golden_directory(archive) / BOOTSTRAP_FILE).read_bytes()
        snapshot = decode_snapshot(content, BOOTSTRAP_FILE)
        levels = [(record.name, record.feature_level) for record in snapshot.records]
        assert levels == list(default_levels().items())


@pytest.mark.parametrize("name", NAMES)
def test_quorum_state_is_written_again_to_the_byte(name: str) -> None:
    content = (metadata_directory(name) / "quorum-state").read_bytes()
    assert encode_quorum_state(decode_quorum_state(content), kraft_version=1) == content


def _id_of(path: Path) -> SnapshotId:
    snapshot_id = find_snapshot_id(path.name)
    assert snapshot_id is not None
    return snapshot_id


def _snapshots_of(directories: list[Path]) -> list[Path]:
    return [path for directory in directories for path in directory.glob("*.checkpoint")]


def _load(records: tuple[Any, ...]) -> MetadataImage:
    delta = MetadataDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta.apply(EMPTY_IMAGE.position)
