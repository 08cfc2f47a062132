"""The value of a metadata record: a frame version, the record's type and version, then its body.

Three unsigned varints stand before the body; the frame version is always 1. The key of the record is null.
Which version to write depends on the cluster's `metadata.version`: the caller decides, nothing here does.
"""

from typing import Any, NamedTuple

from ottla.wire import primitives
from ottla.wire.codec import Readable, decode_from, encode_pieces
from ottla.wire.declare import spec_of
from ottla.wire.errors import MalformedBytes
from ottla.wire.metadata_records import (
    access_control,
    brokers,
    configs,
    controllers,
    delegation_tokens,
    features,
    metadata_transactions,
    no_op,
    partitions,
    producer_ids,
    quotas,
    scram,
    topics,
    zk_migration,
)

FRAME_VERSION = 1

METADATA_RECORDS: tuple[type[Any], ...] = (
    brokers.RegisterBrokerRecord,
    brokers.UnregisterBrokerRecord,
    topics.TopicRecord,
    partitions.PartitionRecord,
    configs.ConfigRecord,
    partitions.PartitionChangeRecord,
    brokers.FenceBrokerRecord,
    brokers.UnfenceBrokerRecord,
    topics.RemoveTopicRecord,
    delegation_tokens.DelegationTokenRecord,
    scram.UserScramCredentialRecord,
    features.FeatureLevelRecord,
    quotas.ClientQuotaRecord,
    producer_ids.ProducerIdsRecord,
    brokers.BrokerRegistrationChangeRecord,
    access_control.AccessControlEntryRecord,
    access_control.RemoveAccessControlEntryRecord,
    no_op.NoOpRecord,
    zk_migration.ZkMigrationStateRecord,
    scram.RemoveUserScramCredentialRecord,
    metadata_transactions.BeginTransactionRecord,
    metadata_transactions.EndTransactionRecord,
    metadata_transactions.AbortTransactionRecord,
    delegation_tokens.RemoveDelegationTokenRecord,
    controllers.RegisterControllerRecord,
    partitions.ClearElrRecord,
)
"""All of them, by type. The types 6, 13 and 16 are no longer in use."""

_CLASS_BY_TYPE = {spec_of(cls).api_key: cls for cls in METADATA_RECORDS}


class MetadataRecord(NamedTuple):
    """A record and the version it was written in."""

    record: Any
    version: int


class UnknownMetadataRecord(MalformedBytes):
    """A newer release wrote this type or version: this one must not guess what the cluster looks like."""

    def __init__(self, record_type: int, version: int) -> None:
        super().__init__(f"no metadata record of type {record_type} in version {version} is known")
        self.record_type = record_type
        self.version = version


def encode_metadata_record(record: Any, version: int) -> bytes:
    """Write the value of a metadata record."""
    record_type = spec_of(type(record)).api_key
    assert record_type is not None, f"{type(record).__name__} is not a metadata record"
    head = primitives.uvarint(FRAME_VERSION) + primitives.uvarint(record_type) + primitives.uvarint(version)
    return b"".join((head, *encode_pieces(record, version)))


def decode_metadata_record(value: Readable) -> MetadataRecord:
    """Read the value of a metadata record. As in Kafka, bytes after the body are an error."""
    try:
        frame_version, position = primitives.read_uvarint(value, 0)
        record_type, position = primitives.read_uvarint(value, position)
        version, position = primitives.read_uvarint(value, position)
    except IndexError as error:
        raise MalformedBytes("a metadata record ends before its type and version") from error
    if frame_version != FRAME_VERSION:
        raise MalformedBytes(f"a metadata record has frame version {frame_version}, not {FRAME_VERSION}")
    cls = _CLASS_BY_TYPE.get(record_type)
    if cls is None or version not in spec_of(cls).versions:
        raise UnknownMetadataRecord(record_type, version)
    record, stop = decode_from(cls, value, version, position)
    if stop != len(value):
        raise MalformedBytes(f"{cls.__name__} v{version}: {len(value) - stop} bytes are left over")
    return MetadataRecord(record, version)
