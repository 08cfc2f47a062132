"""What operators change while other things break: configs at every level, features, quotas, access rules.

What is changed here may change what clients are refused, but nothing that the history is judged by: what is
acknowledged stays, whatever the configs are.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tests.simulation.cluster.clients.careless import is_careless
from tests.simulation.cluster.clients.workload import PASSING
from tests.simulation.cluster.faults.breaking import Breaking, ask_cluster, start, wait_for_start

from ottla import Admin
from ottla.client.admin.access_rules import Rule
from ottla.metadata.features import (
    ELR_VERSION,
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
)
from ottla.metadata.image import DEFAULT_BROKERS
from ottla.model.ids import TopicPartition
from ottla.storage.names import METADATA_PARTITION
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.config_kinds import ResourceType

PASSED: Final = TopicPartition(PASSING, 0)
WAIT_STEPS_MAX: Final = 100
_DAY_MS: Final = "86400000"
TOPIC_CONFIGS: Final[dict[str, tuple[str | None, ...]]] = {
    "min.insync.replicas": ("1", "2", "3", None),
    "retention.ms": ("-1", _DAY_MS),
    "segment.ms": ("300", "5000", None),
    "segment.bytes": ("1048576", None),
    "index.interval.bytes": ("100", "4096", None),
    "flush.messages": ("1", "5", None),
}
"""Without any that deletes what is to be read in the end."""
CLUSTER_CONFIGS: Final[dict[str, tuple[str | None, ...]]] = {
    "min.insync.replicas": ("1", "2"),
    "log.retention.ms": ("-1", _DAY_MS),
    "log.segment.bytes": ("1048576", "2097152"),
    "log.roll.ms": ("400", "3000", None),
    "log.cleaner.threads": ("1", "2"),
    "num.io.threads": ("4", "8"),
}
BROKER_CONFIGS: Final[dict[str, tuple[str | None, ...]]] = {
    "min.insync.replicas": ("1", "2", None),
    "log.roll.ms": ("400", "3000", None),
    "log.segment.bytes": ("1048576", None),
    "leader.replication.throttled.rate": ("100000", None),
    "follower.replication.throttled.rate": ("100000", None),
}
_FEATURES: Final = (TRANSACTION_VERSION, ELR_VERSION, GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION)
_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)


async def change_configs(it: Breaking) -> None:
    """Change configs of a topic, of a broker, or of all brokers, and maybe change them back."""
    for _ in range(it.rng.randint(1, 4)):
        level = it.rng.choice(("topic", "topic", "broker", "brokers", "brokers"))

        async def change(admin: Admin, level: str = level) -> None:
            kind, name, table = await _choose(it, admin, level)
            key = it.rng.choice(sorted(table))
            value = it.rng.choice(table[key])
            it.tell(f"{key} of {level} {name} becomes {value}")
            await admin.configs.alter(kind, name, {key: value})

        await ask_cluster(it, change)
        await asyncio.sleep(it.lasts_ms / 4000)


async def _choose(
    it: Breaking, admin: Admin, level: str
) -> tuple[ResourceType, str, dict[str, tuple[str | None, ...]]]:
    if level == "topic":
        names = [topic.name for topic in await admin.topics.list(internal=True)]
        # What the careless write may be lost, and some of what they rely on is in the configs.
        names = [name for name in names if not is_careless(name) and name != METADATA_PARTITION.topic]
        return ResourceType.TOPIC, it.rng.choice(names), TOPIC_CONFIGS
    if level == "broker":
        return ResourceType.BROKER, str(it.pick().node_id), BROKER_CONFIGS
    return ResourceType.BROKER, DEFAULT_BROKERS.name, CLUSTER_CONFIGS


async def raise_features(it: Breaking) -> None:
    """Raise features that the cluster began without, one after the other."""
    features = [*_FEATURES]
    it.rng.shuffle(features)
    for feature in features[: it.rng.randint(1, 3)]:

        async def update(admin: Admin, feature: str = feature) -> None:
            it.tell(f"{feature} is raised")
            await admin.cluster.update_features({feature: SUPPORTED[feature].max})

        await ask_cluster(it, update)
        await asyncio.sleep(it.lasts_ms / 4000)


async def change_quotas(it: Breaking) -> None:
    """Hold clients up for a while, and let them go again."""
    key = it.rng.choice(_QUOTAS)
    whom: Any = frozenset(((it.rng.choice(("user", "client-id")), None),))
    rate = {"request_percentage": 20.0, "controller_mutation_rate": 5.0}.get(key, 5_000.0)

    async def limit(admin: Admin) -> None:
        it.tell(f"{key} becomes {rate}")
        await admin.quotas.alter(whom, {key: rate})

    async def unlimit(admin: Admin) -> None:
        it.tell(f"{key} is taken back")
        await admin.quotas.alter(whom, {key: None})

    await ask_cluster(it, limit)
    await it.wait()
    for _ in range(5):
        if await ask_cluster(it, unlimit):
            break


async def change_access_rules(it: Breaking) -> None:
    """Add access rules for somebody else, and remove them."""
    rules = [
        Rule(f"User:user-{it.rng.randrange(4)}", operation=3, resource=2, name=f"topic-{number}")
        for number in range(it.rng.randint(1, 5))
    ]

    async def add(admin: Admin) -> None:
        it.tell(f"{len(rules)} access rules are added")
        await admin.access_rules.create(rules)

    async def remove(admin: Admin) -> None:
        it.tell("access rules are removed")
        await admin.access_rules.delete(rules)

    await ask_cluster(it, add)
    await it.wait()
    await ask_cluster(it, remove)


async def delete_records(it: Breaking) -> None:
    """Delete what nobody is going to read, also while no follower is there."""

    async def delete(admin: Admin) -> None:
        it.tell(f"records of {PASSING} are deleted")
        await admin.records.delete({PASSED: -1})

    follower = await _leave_leader_alone(it) if it.rng.random() < 0.5 else None
    for _ in range(it.rng.randint(1, 4)):
        await ask_cluster(it, delete)
        await asyncio.sleep(it.lasts_ms / 4000)
    if follower is not None:
        start(follower)
        await wait_for_start([follower])


async def _leave_leader_alone(it: Breaking) -> SimulatedNode | None:
    """Let the topic have two replicas, and kill the one that follows. Returns it, once it is fenced."""
    leader, follower = it.rng.sample(it.cluster.nodes, 2)
    replicas = [leader.node_id, follower.node_id]

    async def keep_two(admin: Admin) -> None:
        it.tell(f"{PASSING} is moved to {replicas}, and the second one of these is killed")
        await admin.replicas.reassign({PASSED: replicas})

    if not await ask_cluster(it, keep_two):
        return None

    def is_kept() -> bool:
        part = None if leader.node is None else leader.node.broker.partitions.find(*PASSED)
        return part is not None and part.is_leader and set(part.in_sync) == set(replicas)

    def is_fenced() -> bool:
        known = None if leader.node is None else leader.node.broker.image.brokers.get(follower.node_id)
        return known is None or bool(known.fenced)

    if not await _wait(is_kept) or not follower.is_on:
        return None
    follower.kill()
    await _wait(is_fenced)
    return follower


async def _wait(is_so: Callable[[], bool]) -> bool:
    for _ in range(WAIT_STEPS_MAX):
        if is_so():
            return True
        await asyncio.sleep(0.05)
    return False
