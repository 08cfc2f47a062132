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
        doc=("How long a broker retries for a producer whose last transaction is still being completed."),
    )
    add_partitions_to_txn_retry_backoff_ms = integer(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The pause before such a retry.",
    )
    producer_id_expiration_check_interval_ms = integer(
        "producer.id.expiration.check.interval.ms",
        600_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        internal=True,
        doc="How often expired producers are looked for.",
    )
    producer_id_expiration_ms = integer(
        "producer.id.expiration.ms",
        86_400_000,
        Range(1),
        importance=LOW,
        update=CLUSTER_WIDE,
        doc=(
            "How long a partition remembers an idle producer. Duplicates are detected only during this time."
        ),
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="How often transactions that have timed out are looked for.",
    )
    transaction_max_timeout_ms = integer(
        "transaction.max.timeout.ms",
        900_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The longest transaction timeout that a producer may use.",
    )
    transaction_partition_verification_enable = boolean(
        "transaction.partition.verification.enable",
        True,
        importance=LOW,
        update=CLUSTER_WIDE,
        doc=(
            "Check with the coordinator before the first write of a transaction to a partition, which "
            "prevents hanging transactions."
        ),
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="How often expired transactional ids are looked for.",
    )
    transaction_state_log_load_buffer_size = integer(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        inert=True,
        doc="How many bytes are read at once when transactions are loaded from their topic.",
    )
    transaction_state_log_min_isr = integer(
        "transaction.state.log.min.isr",
        2,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The min.insync.replicas of `__transaction_state`.",
    )
    transaction_state_log_num_partitions = integer(
        "transaction.state.log.num.partitions",
        50,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The number of partitions of `__transaction_state`. It must not change after the topic is "
        "created.",
    )
    transaction_state_log_replication_factor = short(
        "transaction.state.log.replication.factor",
        3,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="The replication factor of `__transaction_state`.",
    )
    transaction_state_log_segment_bytes = integer(
        "transaction.state.log.segment.bytes",
        104_857_600,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="Segment size of `__transaction_state`; small segments load and compact faster.",
    )
    transaction_two_phase_commit_enable = boolean(
        "transaction.two.phase.commit.enable",
        False,
        importance=LOW,
        update=READ_ONLY,
        doc="Whether producers may take part in two-phase commits, which never time out.",
    )
    transactional_id_expiration_ms = integer(
        "transactional.id.expiration.ms",
        604_800_000,
        Range(1),
        importance=HIGH,
        update=READ_ONLY,
        doc="How long an unused transactional id is remembered.",
    )
