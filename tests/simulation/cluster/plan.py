"""What happens in one run: how many nodes, which settings, how much work, and which faults at what time.

All of it follows from the seed. A plan can be made smaller, to find out what a failure needs (see `story`).
"""

from random import Random
from typing import Final, NamedTuple

from tests.simulation.cluster.faults import FAULTS

FAULTS_FROM_MS: Final = 300
FAULTS_FOR_MS: Final = 5_000
_QUICK: Final = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.election.backoff.max.ms": "300",
    "replica.lag.time.max.ms": "1500",
}
"""Failures are noticed sooner than by default, so that more happens in a short time."""
_COMMON: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.min.session.timeout.ms": "3000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "2000",
    "log.cleaner.backoff.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "3",
}


class Fault(NamedTuple):
    """Something that breaks at a time, for a while. Its own seed decides the details."""

    at_ms: int
    lasts_ms: int
    kind: str
    seed: int


class Plan(NamedTuple):
    """One run."""

    seed: int
    nodes: int
    voters: int
    operations: int
    faults: tuple[Fault, ...]
    settings: dict[str, str]
    features: tuple[str, ...] = ()


def quick_settings() -> dict[str, str]:
    """Return the settings of most runs."""
    return {**_COMMON, **_QUICK}


def plan_of(seed: int) -> Plan:
    """Return what a seed stands for."""
    rng = Random(f"plan {seed}")
    nodes = rng.choice((1, 3, 3, 3, 3, 3, 3, 4, 5))
    voters = nodes if nodes <= 3 else 3
    kinds = [kind for kind, fault in FAULTS.items() if fault.nodes_min <= nodes]
    # A few kinds of faults for each run: with all of them at once, little else would happen.
    chosen = rng.sample(kinds, min(len(kinds), rng.randint(1, 4)))
    faults = tuple(
        Fault(
            FAULTS_FROM_MS + rng.randrange(FAULTS_FOR_MS),
            rng.choice((100, 500, 1500, 3000, 5000)),
            rng.choice(chosen),
            rng.getrandbits(32),
        )
        for _ in range(rng.randint(2, 6))
    )
    settings = {**_COMMON, **(_QUICK if rng.random() < 0.85 else {})}
    if rng.random() < 0.3:
        # Snapshots of the metadata, and cut logs, while others fetch.
        settings["metadata.log.max.record.bytes.between.snapshots"] = "2000"
    features = ("transaction.version=1",) if rng.random() < 0.2 else ()
    return Plan(seed, nodes, voters, rng.choice((60, 100, 160)), tuple(sorted(faults)), settings, features)
