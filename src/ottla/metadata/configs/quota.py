"""Quotas of users, clients and addresses. They are set by AlterClientQuotas, not by AlterConfigs."""

from ottla.metadata.configs.declare import ConfigValues, double, integer, long
from ottla.metadata.configs.rules import Range
from ottla.metadata.configs.values import INT_MAX, LONG_MAX


class QuotaConfig(ConfigValues):
    """Quotas of users, clients and addresses. They are set by AlterClientQuotas, not by AlterConfigs."""

    connection_creation_rate = integer(
        "connection_creation_rate", INT_MAX, Range(0), doc="Connections per second from an ip."
    )
    consumer_byte_rate = long("consumer_byte_rate", LONG_MAX, doc="Fetch bytes per second.")
    controller_mutation_rate = double(
        "controller_mutation_rate", float(INT_MAX), doc="Partition mutations per second."
    )
    producer_byte_rate = long("producer_byte_rate", LONG_MAX, doc="Produce bytes per second.")
    request_percentage = double(
        "request_percentage", float(INT_MAX), doc="Share of request handling time in percent."
    )
