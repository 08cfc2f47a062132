"""What the settings of a topic mean for its logs."""

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig
from ottla.records.attributes import Codec, TimestampType
from ottla.storage.config import LogConfig


def log_config(topic: TopicConfig, node: NodeConfig) -> LogConfig:
    """Return what a log of the topic obeys on this node."""
    return LogConfig(
        # Kafka's internal setting for tests goes below the smallest allowed `segment.bytes`.
        segment_bytes=topic.internal_segment_bytes or topic.segment_bytes,
        segment_ms=topic.segment_ms,
        segment_jitter_ms=topic.segment_jitter_ms,
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        preallocate=topic.preallocate,
        retention_bytes=topic.retention_bytes,
        retention_ms=topic.retention_ms,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        is_deleted="delete" in topic.cleanup_policy,
        is_compacted="compact" in topic.cleanup_policy,
        delete_retention_ms=topic.delete_retention_ms,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        max_message_bytes=topic.max_message_bytes,
        compression_type=_codec(topic.compression_type),
        compression_gzip_level=topic.compression_gzip_level,
        compression_lz4_level=topic.compression_lz4_level,
        compression_zstd_level=topic.compression_zstd_level,
        message_timestamp_type=_timestamp_type(topic.message_timestamp_type),
        message_timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
        message_timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        producer_id_expiration_ms=node.producer_id_expiration_ms,
        verifies_transactions=node.transaction_partition_verification_enable,
        validate_every_record=node.ottla_validate_every_record,
        decompressed_bytes_max=node.ottla_decompressed_bytes_max,
    )


def _codec(compression_type: str) -> Codec | None:
    match compression_type:
        case "producer":
            return None
        case "uncompressed":
            return Codec.NONE
        case _:
            return Codec[compression_type.upper()]


def _timestamp_type(name: str) -> TimestampType:
    return TimestampType.LOG_APPEND_TIME if name == "LogAppendTime" else TimestampType.CREATE_TIME
