"""Ottla's own configs: few, and with a prefix that Kafka will not use.

A topic may have one too. Apache Kafka 4.3.1 passes over a topic's override that it does not know when it
takes over the cluster's metadata: it starts, does not list that one, and can change the others.
"""

from typing import Final

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, listing, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import OneOf, Range

RECORDS_VALIDATIONS: Final = ("header", "auto", "records")


class OttlaConfigs(ConfigValues):
    """Ottla's own configs of a broker."""

    errors_deadletterqueue_auto_create_topics_enable = boolean(
        "errors.deadletterqueue.auto.create.topics.enable",
        False,
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="Create the topic for the dead letters of a share group when it is first needed (KIP-1191).",
    )
    errors_deadletterqueue_topic_name_prefix = string(
        "errors.deadletterqueue.topic.name.prefix",
        "dlq.",
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="What the names of topics for dead letters must begin with (KIP-1191).",
    )
    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The ottla.acks.all.sync of topics that do not set it.",
    )
    ottla_audit_file = string(
        "ottla.audit.file",
        "",
        importance=LOW,
        update=READ_ONLY,
        unlisted=True,
        doc="A file for denied requests, changes and logins, as lines of JSON; empty means none.",
    )
    ottla_decompressed_bytes_max = integer(
        "ottla.decompressed.bytes.max",
        64 << 20,
        Range(1),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The maximum decompressed size of a batch in bytes. Larger batches are refused.",
    )
    ottla_disk_reserve_bytes = long(
        "ottla.disk.reserve.bytes",
        256 << 20,
        Range(0),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc=(
            "How many bytes of a disk are kept free of records: while less is free, producers are refused. "
            "Deleting, lower retention, reading and committing go on. A tenth of the disk at most."
        ),
    )
    ottla_internal_topics_writable = boolean(
        "ottla.internal.topics.writable",
        False,
        update=CLUSTER_WIDE,
        unlisted=True,
        doc=(
            "Let a client with the client id `__admin_client` write to `__consumer_offsets` and "
            "`__transaction_state`, as in Kafka. If false, no client may do so, because anybody can use that "
            "name."
        ),
    )
    ottla_telemetry_enable = boolean(
        "ottla.telemetry.enable",
        False,
        update=READ_ONLY,
        unlisted=True,
        doc=(
            "Ask clients for their metrics (KIP-714), and show them with the node's own. Which clients push "
            "which metrics is said by client metrics subscriptions."
        ),
    )
    ottla_balance_auto = boolean(
        "ottla.balance.auto",
        False,
        update=READ_ONLY,
        unlisted=True,
        doc=(
            "Let the active controller move replicas: brokers that join get their share, and brokers that "
            "have left for good are emptied. Set it on all nodes."
        ),
    )
    ottla_balance_bytes_per_second = long(
        "ottla.balance.bytes.per.second",
        10 << 20,
        Range(1),
        update=READ_ONLY,
        unlisted=True,
        doc=(
            "With ottla.balance.auto: how fast a broker copies partitions that move to it, in bytes per "
            "second, unless follower.replication.throttled.rate is set."
        ),
    )
    ottla_balance_interval_ms = long(
        "ottla.balance.interval.ms",
        60_000,
        Range(1),
        update=READ_ONLY,
        unlisted=True,
        doc="With ottla.balance.auto: how often the active controller looks for something to move.",
    )
    ottla_balance_leave_ms = long(
        "ottla.balance.leave.ms",
        1_800_000,
        Range(0),
        update=READ_ONLY,
        unlisted=True,
        doc=(
            "With ottla.balance.auto: after how long without a broker its replicas are moved to other "
            "brokers. Those of a broker that was unregistered are moved at once."
        ),
    )
    ottla_balance_moves_max = integer(
        "ottla.balance.moves.max",
        5,
        Range(1),
        update=READ_ONLY,
        unlisted=True,
        doc="With ottla.balance.auto: how many partitions move at the same time.",
    )
    ottla_journal_enable = boolean(
        "ottla.journal.enable",
        True,
        update=CLUSTER_WIDE,
        unlisted=True,
        doc=(
            "Write what the node sees of its clients to the topic `__ottla_journal`: producers, members that "
            "leave, positions of readers, refused requests. `ottla why` and `ottla trace` use it."
        ),
    )
    ottla_journal_interval_ms = integer(
        "ottla.journal.interval.ms",
        5_000,
        Range(1_000),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="How often the positions of readers are written to the topic `__ottla_journal`.",
    )
    ottla_journal_retention_bytes = long(
        "ottla.journal.retention.bytes",
        64 << 20,
        Range(-1),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The retention.bytes of the topic `__ottla_journal` when it is created.",
    )
    ottla_journal_retention_ms = long(
        "ottla.journal.retention.ms",
        3 * 86_400_000,
        Range(-1),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The retention.ms of the topic `__ottla_journal` when it is created.",
    )
    ottla_key_files_check = string(
        "ottla.key.files.check",
        "warn",
        OneOf(("warn", "refuse")),
        update=READ_ONLY,
        unlisted=True,
        doc="What happens with a file of private keys that other users can read, or its group can change: a "
        "warning, or a refusal. A file that all users can change is always refused.",
    )
    ottla_metrics_port = integer(
        "ottla.metrics.port",
        -1,
        Range(-1, 65_535),
        importance=LOW,
        update=READ_ONLY,
        unlisted=True,
        doc="The loopback port that serves metrics for Prometheus; 0 means any free port, -1 means none.",
    )
    ottla_records_validation = string(
        "ottla.records.validation",
        "auto",
        OneOf(RECORDS_VALIDATIONS),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The ottla.records.validation of topics that do not set it.",
    )
    ottla_schemas_topic = string(
        "ottla.schemas.topic",
        "_schemas",
        importance=LOW,
        update=READ_ONLY,
        unlisted=True,
        doc="The topic of the schema registry. Topics that check schemas go by it.",
    )
    ottla_scrub_bytes_per_second = integer(
        "ottla.scrub.bytes.per.second",
        4 << 20,
        Range(0),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="How fast the node reads its logs to look for damage, in bytes per second; 0 means not at all.",
    )
    ottla_scrub_interval_ms = long(
        "ottla.scrub.interval.ms",
        86_400_000,
        Range(1),
        update=CLUSTER_WIDE,
        unlisted=True,
        doc=(
            "How long after it has read all of its logs the node begins to look for damage again. Damage is "
            "reported, and healed from another replica if there is one."
        ),
    )


class DeadLetterGroupConfigs(ConfigValues):
    """Configs of share groups that Kafka has after 4.3 (KIP-1191)."""

    errors_deadletterqueue_copy_record_enable = boolean(
        "errors.deadletterqueue.copy.record.enable",
        False,
        unlisted=True,
        doc="Whether dead letters of this share group have key, value and headers of the record.",
    )
    errors_deadletterqueue_topic_name = string(
        "errors.deadletterqueue.topic.name",
        "",
        unlisted=True,
        doc=(
            "The topic for records that this share group rejects, or that were delivered as often as is "
            "allowed; empty means none."
        ),
    )


class OttlaTopicConfigs(ConfigValues):
    """Ottla's own configs of a topic, and what Kafka has after 4.3."""

    errors_deadletterqueue_group_enable = boolean(
        "errors.deadletterqueue.group.enable",
        False,
        unlisted=True,
        doc="Whether share groups may write dead letters to this topic (KIP-1191).",
    )

    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        broker_key="ottla.acks.all.sync",
        unlisted=True,
        doc="Acknowledge a write with acks=all only when it is on disk. If false, acknowledge it from "
        "memory, as in Kafka.",
    )
    ottla_key_schema_validation = boolean(
        "ottla.key.schema.validation",
        False,
        unlisted=True,
        doc="Refuse records whose key does not name a schema that is registered under `TOPIC-key`.",
    )
    ottla_mirror_halted_partitions = listing(
        "ottla.mirror.halted.partitions",
        (),
        unlisted=True,
        doc="Partitions of a copy whose source has lost records that were copied. `ottla mirror` sets it "
        "and copies them no more. `ottla mirror resume` removes it.",
    )
    ottla_mirror_source = string(
        "ottla.mirror.source",
        "",
        unlisted=True,
        doc="The cluster that this topic is an exact copy of. While it is set, only `ottla mirror` writes to "
        "the topic, and records keep the offsets of the source. `ottla mirror failover` removes it.",
    )
    ottla_mirror_source_topic_id = string(
        "ottla.mirror.source.topic.id",
        "",
        unlisted=True,
        doc="The id that the topic has in the source. `ottla mirror` sets it, and copies nothing of another "
        "topic of the same name.",
    )
    ottla_records_validation = string(
        "ottla.records.validation",
        "auto",
        OneOf(RECORDS_VALIDATIONS),
        broker_key="ottla.records.validation",
        unlisted=True,
        doc=(
            "Which records of a written batch are checked: all (`records`, as in Kafka), as many as fit into "
            "a tenth of the cost of the write (`auto`), or none (`header`)."
        ),
    )
    ottla_value_schema_validation = boolean(
        "ottla.value.schema.validation",
        False,
        unlisted=True,
        doc="Refuse records whose value does not name a schema that is registered under `TOPIC-value`.",
    )
