"""The values of `replica.selector.class` that Ottla knows: Kafka's own two."""

from typing import Final

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_ONLY: Final = "org.apache.kafka.common.replica.LeaderSelector"
SELECTORS: Final = (LEADER_ONLY, RACK_AWARE)
