"""Ottla's own configs: few, and with a prefix that Kafka will not use.

A topic may have one too. Apache Kafka 4.3.1 passes over a topic's override that it does not know when it
takes over the cluster's metadata: it starts, does not list that one, and can change the others.
"""

from ottla.metadata.configs.declare import ConfigValues, boolean
from ottla.metadata.configs.kinds import CLUSTER_WIDE, HIGH


class OttlaConfigs(ConfigValues):
    """Ottla's own configs of a broker."""

    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        update=CLUSTER_WIDE,
        unlisted=True,
        doc="The ottla.acks.all.sync of topics that set none.",
    )


class OttlaTopicConfigs(ConfigValues):
    """Ottla's own configs of a topic."""

    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        broker_key="ottla.acks.all.sync",
        unlisted=True,
        doc="Answer a write with acks=all only when it is on disk; false answers from memory, as Kafka does.",
    )
