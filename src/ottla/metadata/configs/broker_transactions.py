"""Broker configs of transactions and idempotent producers."""

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, short
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import Range


class BrokerTransactionConfigs(ConfigValues):
    """Broker configs of transactions and idempotent producers."""

    add_partitions_to_txn_retry_backoff_max_ms = integer(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        Range(0),
        importance=HIGH,
        update=READ_ONLY,
        doc="Upper bound of server-side retry while a txn partition add is refused as concurrent.",
    )
    add_partitions_to_txn_retry_backoff_ms = integer(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="First pause of that retry.",
    )
    producer_id_expiration_check_interval_ms = integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="Period of producer state expiry.",
    )
    producer_id_expiration_ms = integer(
        "producer.id.expiration.ms",
        86_400_000,
        Range(1),
        importance=LOW,
        update=CLUSTER_WIDE,
        doc="Idle producer state is forgotten.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="Period of transaction timeout scan.",
    )
    transaction_max_timeout_ms = integer(
        "transaction.max.timeout.ms",
        900_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Largest timeout a producer may ask.",
    )
    transaction_partition_verification_enable = boolean(
        "transaction.partition.verification.enable",
        True,
        importance=LOW,
        update=CLUSTER_WIDE,
        doc="Check with coordinator before first transactional append.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="Period of transactional id expiry.",
    )
    transaction_state_log_load_buffer_size = integer(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Read size when loading transactions.",
    )
    transaction_state_log_min_isr = integer(
        "transaction.state.log.min.isr",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Min.insync.replicas of __transaction_state.",
    )
    transaction_state_log_num_partitions = integer(
        "transaction.state.log.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Its partitions.",
    )
    transaction_state_log_replication_factor = short(
        "transaction.state.log.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Its RF.",
    )
    transaction_state_log_segment_bytes = integer(
        "transaction.state.log.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Its segment size.",
    )
    transaction_two_phase_commit_enable = boolean(
        "transaction.two.phase.commit.enable",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Allow 2PC participants.",
    )
    transactional_id_expiration_ms = integer(
        "transactional.id.expiration.ms",
        604_800_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Unused transactional ids are dropped.",
    )
