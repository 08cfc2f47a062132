"""Broker configs of tiered storage (KIP-405)."""

from ottla.metadata.configs.declare import ConfigValues, boolean, double, integer, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, LOW, READ_ONLY
from ottla.metadata.configs.rules import NonEmpty, Range
from ottla.metadata.configs.values import LONG_MAX


class BrokerTieredStorageConfigs(ConfigValues):
    """Broker configs of tiered storage (KIP-405)."""

    follower_fetch_last_tiered_offset_enable = boolean(
        "follower.fetch.last.tiered.offset.enable",
        False,
        update=CLUSTER_WIDE,
        inert=True,
        doc="Let a new follower start after the records that are in remote storage.",
    )
    log_local_retention_bytes = long(
        "log.local.retention.bytes",
        -2,
        Range(-2),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The local.retention.bytes of topics that do not set it.",
    )
    log_local_retention_ms = long(
        "log.local.retention.ms",
        -2,
        Range(-2),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The local.retention.ms of topics that do not set it.",
    )
    remote_fetch_max_wait_ms = integer(
        "remote.fetch.max.wait.ms",
        500,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="How long a fetch waits for remote storage.",
    )
    remote_list_offsets_request_timeout_ms = long(
        "remote.list.offsets.request.timeout.ms",
        30_000,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="How long ListOffsets waits for remote storage.",
    )
    remote_log_index_file_cache_total_size_bytes = long(
        "remote.log.index.file.cache.total.size.bytes",
        1_073_741_824,
        Range(1),
        importance=LOW,
        update=CLUSTER_WIDE,
        inert=True,
        doc="The maximum size of indexes from remote storage that are kept locally, in bytes.",
    )
    remote_log_index_file_cache_ttl_ms = long(
        "remote.log.index.file.cache.ttl.ms",
        900_000,
        Range(-1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="How long an unused index from remote storage is kept locally; -1 means forever.",
    )
    remote_log_manager_copier_thread_pool_size = integer(
        "remote.log.manager.copier.thread.pool.size",
        10,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads that copy segments to remote storage.",
    )
    remote_log_manager_copy_max_bytes_per_second = long(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG_MAX,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Bytes per second for copying to remote storage.",
    )
    remote_log_manager_expiration_thread_pool_size = integer(
        "remote.log.manager.expiration.thread.pool.size",
        10,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads that delete segments from remote storage.",
    )
    remote_log_manager_fetch_max_bytes_per_second = long(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG_MAX,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="Bytes per second for reading from remote storage.",
    )
    remote_log_manager_follower_thread_pool_size = integer(
        "remote.log.manager.follower.thread.pool.size",
        2,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads with which followers track remote storage.",
    )
    remote_log_manager_task_interval_ms = long(
        "remote.log.manager.task.interval.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How often segments to copy or delete are looked for.",
    )
    remote_log_manager_task_retry_backoff_max_ms = long(
        "remote.log.manager.task.retry.backoff.max.ms",
        30_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="The longest pause before a remote storage task is retried.",
    )
    remote_log_manager_task_retry_backoff_ms = long(
        "remote.log.manager.task.retry.backoff.ms",
        500,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="The first pause before a remote storage task is retried.",
    )
    remote_log_manager_task_retry_jitter = double(
        "remote.log.manager.task.retry.jitter",
        0.2,
        Range(0, 0.5),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        inert=True,
        doc="The random part of that pause, as a fraction.",
    )
    remote_log_manager_thread_pool_size = integer(
        "remote.log.manager.thread.pool.size",
        2,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The number of threads for other work on remote storage.",
    )
    remote_log_metadata_custom_metadata_max_bytes = integer(
        "remote.log.metadata.custom.metadata.max.bytes",
        128,
        Range(0),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="The maximum number of bytes of custom metadata per segment.",
    )
    remote_log_metadata_manager_class_name = string(
        "remote.log.metadata.manager.class.name",
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NonEmpty(),
        update=READ_ONLY,
        inert=True,
        doc="Java class that stores the metadata of segments in remote storage.",
    )
    remote_log_metadata_manager_class_path = string(
        "remote.log.metadata.manager.class.path",
        None,
        update=READ_ONLY,
        inert=True,
        doc="The class path of that Java class.",
    )
    remote_log_metadata_manager_impl_prefix = string(
        "remote.log.metadata.manager.impl.prefix",
        "rlmm.config.",
        NonEmpty(),
        update=READ_ONLY,
        inert=True,
        doc="Configs with this prefix are passed to that Java class.",
    )
    remote_log_metadata_manager_listener_name = string(
        "remote.log.metadata.manager.listener.name",
        None,
        NonEmpty(),
        update=READ_ONLY,
        inert=True,
        doc="The listener that the Java class connects to.",
    )
    remote_log_reader_max_pending_tasks = integer(
        "remote.log.reader.max.pending.tasks",
        100,
        Range(1),
        update=READ_ONLY,
        inert=True,
        doc="The maximum number of reads from remote storage that wait.",
    )
    remote_log_reader_threads = integer(
        "remote.log.reader.threads",
        10,
        Range(1),
        update=CLUSTER_WIDE,
        inert=True,
        doc="The number of threads that read from remote storage.",
    )
    remote_log_storage_manager_class_name = string(
        "remote.log.storage.manager.class.name",
        None,
        NonEmpty(),
        update=READ_ONLY,
        inert=True,
        doc="Java class that stores segments remotely.",
    )
    remote_log_storage_manager_class_path = string(
        "remote.log.storage.manager.class.path",
        None,
        update=READ_ONLY,
        inert=True,
        doc="The class path of that Java class.",
    )
    remote_log_storage_manager_impl_prefix = string(
        "remote.log.storage.manager.impl.prefix",
        "rsm.config.",
        NonEmpty(),
        update=READ_ONLY,
        inert=True,
        doc="Configs with this prefix are passed to that Java class.",
    )
    remote_log_storage_system_enable = boolean(
        "remote.log.storage.system.enable", False, update=READ_ONLY, inert=True, doc="Use remote storage."
    )
