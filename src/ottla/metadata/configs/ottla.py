"""Ottla's own configs: few, and all of a broker, since Kafka must be able to read what a topic sets."""

from ottla.metadata.configs.declare import ConfigValues, boolean
from ottla.metadata.configs.kinds import HIGH, READ_ONLY


class OttlaConfigs(ConfigValues):
    """Ottla's own configs of a broker."""

    ottla_acks_all_sync = boolean(
        "ottla.acks.all.sync",
        True,
        importance=HIGH,
        update=READ_ONLY,
        unlisted=True,
        doc="Answer a write with acks=all only when it is on disk; false answers from memory, as Kafka does.",
    )
