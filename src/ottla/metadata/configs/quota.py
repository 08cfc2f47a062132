"""Quotas of users, clients and addresses. They are set by AlterClientQuotas, not by AlterConfigs."""

from ottla.metadata.configs.declare import ConfigValues, double, integer, long
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import INT_MAX, LONG_MAX


class QuotaConfig(ConfigValues):
    """Quotas of users, clients and addresses. They are set by AlterClientQuotas, not by AlterConfigs."""

    connection_creation_rate = integer(
        "connection_creation_rate",
        INT_MAX,
        Range(0),
        doc="Connections per second that an address may open to one broker.",
    )
    consumer_byte_rate = long(
        "consumer_byte_rate", LONG_MAX, doc="Bytes per second that a client may fetch from one broker."
    )
    controller_mutation_rate = double(
        "controller_mutation_rate",
        float(INT_MAX),
        doc="Partitions per second that a client may create or delete.",
    )
    producer_byte_rate = long(
        "producer_byte_rate", LONG_MAX, doc="Bytes per second that a client may write to one broker."
    )
    request_percentage = double(
        "request_percentage",
        float(INT_MAX),
        doc="The share of a broker's time that the requests of a client may take, in percent of one thread.",
    )
