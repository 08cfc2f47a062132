"""The small vocabularies of configs. Numbers are those that travel in Kafka's requests and answers."""

from enum import Enum, IntEnum


class ConfigType(IntEnum):
    """What a value is, as DescribeConfigs tells it; 0 there means a config nobody declared."""

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
    """Which layer a value comes from. Of several that set a config the smallest number wins."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does with one config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Importance(Enum):
    """How many users should know a config."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class UpdateMode(Enum):
    """When a changed value takes effect, and for whom it can be changed."""

    READ_ONLY = "read-only"
    """Only by a restart."""
    PER_BROKER = "per-broker"
    """At once, for one broker."""
    CLUSTER_WIDE = "cluster-wide"
    """At once, for one broker or for all."""
    DYNAMIC = "dynamic"
    """At once, for the resource it is set on (a topic, a group, a subscription, a quota entity)."""


HIGH = Importance.HIGH
LOW = Importance.LOW
READ_ONLY = UpdateMode.READ_ONLY
PER_BROKER = UpdateMode.PER_BROKER
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE
