"""Metadata logs that Apache Kafka wrote: in the same situations we decide the same."""

from collections import Counter

import pytest
from tests.golden.metadata_logs import NAMES, SINGLE_NODES, metadata_directory, read_log
from tests.support.controller_replay import Comparison, compare_decisions, ends_decision

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, Position
from ottla.model.ids import Offset
from ottla.quorum.batches import MetadataBatch
from ottla.quorum.snapshot_file import decode_snapshot


@pytest.mark.parametrize("name", SINGLE_NODES)
def test_brokers_of_a_single_node_come_and_go_as_in_kafka(name: str) -> None:
    _check(list(compare_decisions(EMPTY_IMAGE, read_log(metadata_directory(name)))))


def test_a_single_node_went_through_every_state() -> None:
    found = list(compare_decisions(EMPTY_IMAGE, read_log(metadata_directory("03-killed9"))))
    assert Counter(one.what for one in found) == {
        "registers": 1,
        "registers again": 2,
        "is unfenced": 3,
        "begins to stop": 2,
        "is fenced": 2,
    }
    assert max(one.record_count for one in found) > 30, "leaders were elected"


def test_brokers_of_a_cluster_come_and_go_as_in_kafka() -> None:
    directories = [metadata_directory(name) for name in NAMES if name.startswith("04-cluster")]
    log = {batch.base_offset: batch for directory in directories for batch in read_log(directory)}
    first = min(path.name for directory in directories for path in directory.glob("*.checkpoint"))
    start = Offset(int(first.split("-")[0]))
    path = next(directory / first for directory in directories if (directory / first).exists())
    delta = MetadataDelta(EMPTY_IMAGE)
    for record in decode_snapshot(path.read_bytes(), first).records:
        delta.replay(record)
    image = delta.apply(Position(Offset(start - 1), 5, 0))
    batches = [log[offset] for offset in sorted(log) if offset >= start]
    found = list(compare_decisions(image, batches))
    assert len({one.what for one in found}) >= 3
    _check(found)


def test_decisions_that_share_a_batch_are_told_apart() -> None:
    """As a controller on a busy machine writes them."""
    batches = list(read_log(metadata_directory("03-killed9")))
    apart = list(compare_decisions(EMPTY_IMAGE, batches))
    together: list[MetadataBatch] = []
    for batch in batches:
        last = together[-1] if together else batch
        if not last.is_control and not batch.is_control and ends_decision(last.records[-1]):
            together[-1] = batch._replace(
                base_offset=last.base_offset, records=(*last.records, *batch.records)
            )
        else:
            together.append(batch)
    assert len(together) < len(batches)
    found = list(compare_decisions(EMPTY_IMAGE, together))
    assert [(one.what, one.record_count) for one in found] == [(one.what, one.record_count) for one in apart]
    _check(found)


def _check(found: list[Comparison]) -> None:
    assert found
    for one in found:
        assert not one.ours, f"only we write at {one.offset}, where a broker {one.what}"
        assert not one.theirs, f"only Kafka writes at {one.offset}, where a broker {one.what}"
