"""Which version of a record to write, so that every node at the finalized metadata.version can read it."""

from typing import Any

from ottla.metadata.features import CORDONED_FROM, DIRECTORIES_FROM, ELR_FROM
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord

_ZK_MIGRATION_FROM = 8


def record_version(record: Any, metadata_version: int) -> int:
    """Return the version in which to write `record`."""
    if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
        return 2 if metadata_version >= ELR_FROM else 1 if metadata_version >= DIRECTORIES_FROM else 0
    if isinstance(record, RegisterBrokerRecord):
        if metadata_version >= CORDONED_FROM:
            return 4
        return (
            3 if metadata_version >= DIRECTORIES_FROM else 2 if metadata_version >= _ZK_MIGRATION_FROM else 1
        )
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _lowest_version(record)
    return 0


def _lowest_version(record: BrokerRegistrationChangeRecord) -> int:
    """Return the lowest version that has all fields which say something."""
    if record.cordoned_log_dirs is not None:
        return 3
    return 2 if record.log_dirs else 1 if record.in_controlled_shutdown else 0
