"""Features: levels of a fresh cluster, ways down, and the versions of records that follow from them."""

import pytest
from tests.support.deciding import registration

from ottla.metadata.features import (
    ELR_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    default_levels,
    find_unmet_need,
    is_elr_enabled,
    loses_metadata,
    metadata_version_of,
)
from ottla.metadata.record_versions import record_version
from ottla.model.uuid import ZERO_UUID
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord


def test_a_fresh_cluster_has_the_levels_of_kafka() -> None:
    assert list(default_levels().items()) == [
        (METADATA_VERSION, 30),
        (ELR_VERSION, 1),
        ("group.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ]


def test_a_cluster_of_an_older_release_has_less() -> None:
    assert default_levels(21) == {METADATA_VERSION: 21}
    assert default_levels(25) == {METADATA_VERSION: 25, "group.version": 1, "transaction.version": 2}


def test_default_levels_are_supported() -> None:
    for name, level in default_levels().items():
        assert level in SUPPORTED[name]


@pytest.mark.parametrize(
    ("old", "new", "loses"),
    [(30, 29, True), (29, 24, False), (29, 23, False), (29, 22, True), (12, 11, False), (11, 10, True)],
)
def test_going_down_loses_what_only_the_higher_version_can_express(old: int, new: int, loses: bool) -> None:
    assert loses_metadata(old, new) is loses


def test_eligible_leaders_need_a_metadata_version_that_records_them() -> None:
    assert find_unmet_need(ELR_VERSION, 1, {METADATA_VERSION: 22}) == (METADATA_VERSION, 23)
    assert find_unmet_need(ELR_VERSION, 1, {METADATA_VERSION: 23}) is None
    assert find_unmet_need(ELR_VERSION, 0, {}) is None
    assert not is_elr_enabled({})
    assert is_elr_enabled({ELR_VERSION: 1})


def test_before_a_version_is_finalized_the_oldest_is_assumed() -> None:
    assert metadata_version_of({}) == 7


@pytest.mark.parametrize(
    ("metadata_version", "expected"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)]
)
def test_partition_records_follow_the_metadata_version(metadata_version: int, expected: int) -> None:
    record = PartitionChangeRecord(partition_id=0, topic_id=ZERO_UUID)
    assert record_version(record, metadata_version) == expected


@pytest.mark.parametrize(("metadata_version", "expected"), [(7, 1), (8, 2), (17, 3), (29, 3), (30, 4)])
def test_registrations_follow_the_metadata_version(metadata_version: int, expected: int) -> None:
    assert record_version(registration(1), metadata_version) == expected


def test_a_change_of_a_registration_is_written_in_the_lowest_version_that_can_say_it() -> None:
    def version(**fields: object) -> int:
        record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, **fields)  # type: ignore[arg-type]
        return record_version(record, 30)

    assert version(fenced=1) == 0
    assert version(in_controlled_shutdown=1) == 1
    assert version(log_dirs=(ZERO_UUID,)) == 2
    assert version(cordoned_log_dirs=()) == 3
    assert record_version(NoOpRecord(), 30) == 0
