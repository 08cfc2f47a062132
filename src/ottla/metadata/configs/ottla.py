"""Ottla's own configs: few, and with a prefix that Kafka will not use.

A topic may have one too. Apache Kafka 4.3.1 passes over a topic's override that it does not know when it
takes over the cluster's metadata: it starts, does not list that one, and can change the others.
"""

from typing import Final

from ottla.metadata.configs.declare import ConfigValues, boolean, integer, long, string
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import OneOf, Range

RECORDS_VALIDATIONS: Final = ("header", "auto", "records")


class OttlaConfigs(ConfigValues):
    """Ottla's own configs of a broker."""

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


class OttlaTopicConfigs(ConfigValues):
    """Ottla's own configs of a topic."""

    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        broker_key="ottla.acks.all.sync",
        unlisted=True,
        doc="Acknowledge a write with acks=all only when it is on disk. If false, acknowledge it from "
        "memory, as in Kafka.",
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
