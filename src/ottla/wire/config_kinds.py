"""The numbers by which requests and answers about configs say what they mean.

Brokers and clients share them, so they stand beside the messages. A number that is not here is for the reader
to deal with: a newer peer may know more.
"""

from enum import IntEnum


class ResourceType(IntEnum):
    """What has configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigType(IntEnum):
    """What a value is; UNKNOWN is a config that nobody declared."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Which layer a value comes from. Of several that set a config the smallest number wins.

    UNKNOWN is what old brokers say.
    """

    UNKNOWN = -1
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does with one config: the last two add to a list, or take away from it."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
