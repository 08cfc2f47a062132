"""The small vocabularies of configs. Those that travel are in `wire.config_kinds`."""

from enum import Enum


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
