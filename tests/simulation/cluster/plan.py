"""What happens in one run: how many nodes, which settings, how much work, and which faults at what time.

All of it follows from the seed. A plan can be made smaller, to find out what a failure needs (see `story`).
"""

from random import Random
from typing import Final

from tests.simulation.cluster.clients.more_clients import MORE_CLIENTS
from tests.simulation.cluster.faults.kinds import AIMED, ALONE, FAMILIES, FAULTS, RARE, WIDE
from tests.simulation.cluster.plans import CLIENTS, FAULTS_FROM_MS, FAULTS_MS_PER_OPERATION, Fault, Plan
from tests.simulation.cluster.wide import widened

ENDS: Final = ("", "cut-power", "cut-power", "kill", "restart")
"""What happens to all nodes at once after the last fault."""
RARE_SHARE: Final = 0.04
"""How many seeds have a fault that is rare."""
RARE_OPERATIONS_MIN: Final = 40
"""Such a fault has several steps, and there has to be work until the last one."""
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
    "log.cleaner.backoff.ms": "500",
    "ottla.scrub.interval.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "3",
}
_SNAPSHOTS: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.log.segment.ms": "500",
    "metadata.max.retention.ms": "1000",
}


def quick_settings() -> dict[str, str]:
    """Return the settings of most runs."""
    return {**_COMMON, **_QUICK}


def plan_of(seed: int) -> Plan:
    """Return what a seed stands for."""
    return widened(_with_rare(_with_more(_plain_plan_of(seed))))


def _with_rare(plan: Plan) -> Plan:
    """Let something rare happen in a few plans. All others are what they would be without it."""
    rng = Random(f"rare faults {plan.seed}")
    if plan.nodes < 3 or rng.random() >= RARE_SHARE:
        return plan
    fault = Fault(FAULTS_FROM_MS, rng.choice((50, 200, 700)), rng.choice(RARE), rng.getrandbits(32))
    more = plan.more if "careless" in plan.more else ("careless", *plan.more)
    operations = max(plan.operations, RARE_OPERATIONS_MIN)
    settings = {**plan.settings, **_QUICK}
    return plan._replace(faults=(fault,), more=more, operations=operations, settings=settings)


def _with_more(plan: Plan) -> Plan:
    """Add further clients to some plans. All others are what they would be without these."""
    rng = Random(f"more clients {plan.seed}")
    if plan.nodes < 3 or rng.random() >= 0.3:
        # A single node that loses power loses what is not synced, and nobody else has it.
        return plan
    more = tuple(client for client in MORE_CLIENTS if rng.random() < 0.35)
    settings = dict(plan.settings)
    if rng.random() < 0.5:
        # Logs have to refuse by themselves what a coordinator would refuse for them.
        settings["transaction.partition.verification.enable"] = "false"
    more = more or (rng.choice(MORE_CLIENTS),)
    faults = plan.faults
    if rng.random() < 0.35:
        kind = rng.choice(AIMED)
        if kind == "cut-power-in-a-snapshot":
            settings |= _SNAPSHOTS
        at_ms = FAULTS_FROM_MS + rng.randrange(FAULTS_MS_PER_OPERATION * plan.operations)
        aimed = Fault(at_ms, rng.choice((50, 200, 700)), kind, rng.getrandbits(32))
        # Beside few others: it has to come to its moment.
        faults = tuple(sorted((*faults[:2], aimed)))
    return plan._replace(more=more, settings=settings, faults=faults)


def _plain_plan_of(seed: int) -> Plan:
    rng = Random(f"plan {seed}")
    nodes = rng.choice((1, 3, 3, 3, 3, 3, 3, 3, 4, 5))
    operations = rng.choice((8, 8, 12, 12, 20, 40, 80))
    kinds = _draw_kinds(rng, nodes)
    faults = tuple(
        Fault(
            FAULTS_FROM_MS + rng.randrange(FAULTS_MS_PER_OPERATION * operations),
            rng.choice((50, 200, 700, 1500, 3000)),
            rng.choice(kinds),
            rng.getrandbits(32),
        )
        for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 6)))
    )
    return Plan(
        seed,
        nodes,
        voters=min(nodes, 3),
        operations=operations,
        faults=tuple(sorted(faults)),
        settings=_draw_settings(rng),
        features=("transaction.version=1",) if rng.random() < 0.2 else (),
        clients=tuple(client for client in CLIENTS if rng.random() < 0.35),
        end=rng.choice(ENDS),
    )


def _draw_kinds(rng: Random, nodes: int) -> list[str]:
    """Draw a few kinds of faults for a run: with all of them at once, little else would happen."""
    family = rng.choice(FAMILIES) if rng.random() < 0.5 else [kind for kind in FAULTS if kind not in ALONE]
    kinds = [kind for kind in family if FAULTS[kind].nodes_min <= nodes]
    kinds = kinds or [
        kind
        for kind, fault in FAULTS.items()
        if fault.nodes_min <= nodes and kind not in (*AIMED, *RARE, *WIDE)
    ]
    return rng.sample(kinds, min(len(kinds), rng.randint(1, 4)))


def _draw_settings(rng: Random) -> dict[str, str]:
    settings = {**_COMMON, **(_QUICK if rng.random() < 0.85 else {})}
    if rng.random() < 0.4:
        # Snapshots of the metadata, and cut logs, while others fetch.
        settings |= _SNAPSHOTS
    if rng.random() < 0.5:
        settings["log.index.interval.bytes"] = "100"
    if rng.random() < 0.4:
        settings["log.roll.ms"] = rng.choice(("200", "1000"))
    return settings
