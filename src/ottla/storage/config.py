"""The settings of one topic that its logs obey, with Kafka's names and defaults.

One frozen object serves all partitions of a topic. Parsing and checking what a user wrote is not done here.
"""

from dataclasses import dataclass, field
from typing import Final

from ottla.records.attributes import Codec, TimestampType
from ottla.storage.appending.record_checks import RecordsValidation

UNLIMITED: Final = -1
LONG_MAX: Final = 0x7FFFFFFFFFFFFFFF

_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """`segment_bytes` is the topic setting `segment.bytes`, and so on."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False

    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * _DAY_MS
    file_delete_delay_ms: int = 60_000

    # `cleanup.policy` may name both, either or, since KIP-1141, neither.
    is_deleted: bool = True
    is_compacted: bool = False
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5

    max_message_bytes: int = 1_048_588
    # None is `producer`: a batch stays as its producer compressed it. `uncompressed` is Codec.NONE.
    compression_type: Codec | None = None
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000

    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    # Whether a record is committed only when it is on disk: `ottla.acks.all.sync`. See `committed`.
    acks_all_sync: bool = True
    # Whether the log is a copy of a partition of another cluster: `ottla.mirror.source`.
    is_mirror: bool = False

    # A broker setting of Kafka's that the log needs: when a silent producer is forgotten.
    producer_id_expiration_ms: int = _DAY_MS
    # Another one, `transaction.partition.verification.enable`: see `verification`.
    verifies_transactions: bool = True

    # Deviation: Kafka opens every record of every batch. See `record_checks`.
    records_validation: RecordsValidation = RecordsValidation.AUTO
    # Whether the schemas that records name are checked. Brokers do that, before they append.
    checks_key_schemas: bool = False
    checks_value_schemas: bool = False
    # Deviation: Kafka has no bound for what a compressed batch may unpack to. A bomb could take all memory.
    decompressed_bytes_max: int = 64 << 20

    # Whether a producer's batch may be let in by its header alone. Every append asks.
    takes_batches_as_they_are: bool = field(init=False, repr=False, compare=False, default=False)
    # Whether it has to be let in by a broker that knows schemas.
    checks_schemas: bool = field(init=False, repr=False, compare=False, default=False)
    # Whether its records are looked at all the same, as far as that is cheap.
    looks_at_records: bool = field(init=False, repr=False, compare=False, default=False)
    # Whether a coordinator's may: of its records it is known that they have keys.
    takes_own_batches_as_they_are: bool = field(init=False, repr=False, compare=False, default=False)

    def __post_init__(self) -> None:
        takes_own_batches_as_they_are = (
            self.message_timestamp_type is TimestampType.CREATE_TIME
            and self.compression_type is None
            and self.message_timestamp_before_max_ms == LONG_MAX
        )
        object.__setattr__(self, "takes_own_batches_as_they_are", takes_own_batches_as_they_are)
        object.__setattr__(self, "checks_schemas", self.checks_key_schemas or self.checks_value_schemas)
        takes_batches_as_they_are = (
            takes_own_batches_as_they_are
            and not self.is_compacted
            and not self.checks_schemas
            and self.records_validation is not RecordsValidation.RECORDS
        )
        object.__setattr__(self, "takes_batches_as_they_are", takes_batches_as_they_are)
        looks_at_records = self.records_validation is RecordsValidation.AUTO
        object.__setattr__(self, "looks_at_records", looks_at_records)

    def compression_level_of(self, codec: Codec) -> int | None:
        """Return the level to compress with, or None where there is none to choose."""
        match codec:
            case Codec.GZIP:
                return self.compression_gzip_level
            case Codec.LZ4:
                return self.compression_lz4_level
            case Codec.ZSTD:
                return self.compression_zstd_level
            case _:
                return None
