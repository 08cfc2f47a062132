"""Carrying out moves of partitions: some at a time, throttled, watched until they are done.

The throttle is Kafka's own (KIP-73): a rate for each broker, and for each topic the list of replicas it holds
for. It is taken back at the end, also when somebody presses Ctrl-C. Moves that were begun go on then, without
a throttle: `ottla cluster reassign --cancel` calls them off.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from ottla.cli.failure import Failure
from ottla.metadata.balance_plan import Move
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.configs import ConfigResource

_LOOK_AGAIN_S: Final = 0.5
_LEADER_RATE: Final = "leader.replication.throttled.rate"
_FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
_LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
_FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

Progress = Callable[[int, int], None]
"""Called with how many moves are done and how many there are."""


async def carry_out(
    admin: "Admin",
    moves: Sequence[Move],
    *,
    throttle_bytes: int | None,
    at_once: int,
    progress: Progress,
) -> None:
    """Do the moves, at most `at_once` at a time, and let preferred leaders lead at the end."""
    copies = [move for move in moves if move.added or len(move.after) != len(move.before)]
    async with AsyncExitStack() as stack:
        if throttle_bytes is not None and copies:
            await _throttle(admin, copies, throttle_bytes)
            stack.push_async_callback(_unthrottle, admin, copies)
        waiting = list(moves)
        moving: set[TopicPartition] = set()
        while waiting or moving:
            begun, waiting = waiting[: at_once - len(moving)], waiting[at_once - len(moving) :]
            if begun:
                await _begin(admin, begun)
                moving.update(move.where for move in begun)
            progress(len(moves) - len(waiting) - len(moving), len(moves))
            moving &= (await admin.replicas.reassignments(moving)).keys()
            if moving:
                await asyncio.sleep(_LOOK_AGAIN_S)
        progress(len(moves), len(moves))
    await elect_preferred(admin, [move.where for move in moves])


async def elect_preferred(admin: "Admin", partitions: Sequence[TopicPartition]) -> int:
    """Let the preferred leaders of partitions lead, as far as they can. Returns how many changed."""
    if not partitions:
        return 0
    results = await admin.replicas.elect(partitions)
    return sum(results.succeeded.values())


async def _begin(admin: "Admin", moves: Sequence[Move]) -> None:
    results = await admin.replicas.reassign({move.where: move.after for move in moves})
    if results.failed:
        first = next(iter(results.failed.values()))
        raise Failure(f"{first}; moves that were begun before it go on, `ottla cluster describe` counts them")


async def _throttle(admin: "Admin", moves: Sequence[Move], bytes_per_s: int) -> None:
    from ottla.client.admin.configs import ConfigChange
    from ottla.wire.config_kinds import AlterOperation

    rates = [
        ConfigChange(name, AlterOperation.SET, str(bytes_per_s)) for name in (_LEADER_RATE, _FOLLOWER_RATE)
    ]
    changes: dict[ConfigResource, list[ConfigChange]] = dict.fromkeys(_brokers_of(moves), rates)
    for resource, leaders, followers in _throttled_replicas(moves):
        changes[resource] = [
            ConfigChange(_LEADER_REPLICAS, AlterOperation.SET, ",".join(leaders)),
            ConfigChange(_FOLLOWER_REPLICAS, AlterOperation.SET, ",".join(followers)),
        ]
    (await admin.configs.alter_many(changes)).check()


async def _unthrottle(admin: "Admin", moves: Sequence[Move]) -> None:
    from ottla.client.admin.configs import ConfigChange
    from ottla.wire.config_kinds import AlterOperation

    def deleted(*names: str) -> list[ConfigChange]:
        return [ConfigChange(name, AlterOperation.DELETE) for name in names]

    changes: dict[ConfigResource, list[ConfigChange]] = {
        resource: deleted(_LEADER_RATE, _FOLLOWER_RATE) for resource in _brokers_of(moves)
    }
    for resource, _, _ in _throttled_replicas(moves):
        changes[resource] = deleted(_LEADER_REPLICAS, _FOLLOWER_REPLICAS)
    (await admin.configs.alter_many(changes)).check()


def _brokers_of(moves: Sequence[Move]) -> "list[ConfigResource]":
    from ottla.client.admin.configs import ConfigResource
    from ottla.wire.config_kinds import ResourceType

    brokers = sorted({broker for move in moves for broker in (*move.before, *move.after)})
    return [ConfigResource(ResourceType.BROKER, str(broker)) for broker in brokers]


def _throttled_replicas(moves: Sequence[Move]) -> "Iterator[tuple[ConfigResource, list[str], list[str]]]":
    """Give for each topic the replicas that send and those that fetch, as Kafka's configs list them."""
    from ottla.client.admin.configs import ConfigResource
    from ottla.wire.config_kinds import ResourceType

    by_topic: Mapping[str, list[Move]] = {
        topic: [move for move in moves if move.where.topic == topic]
        for topic in dict.fromkeys(move.where.topic for move in moves)
    }
    for topic, those in by_topic.items():
        leaders = [f"{move.where.partition}:{one}" for move in those for one in move.before]
        followers = [f"{move.where.partition}:{one}" for move in those for one in move.added]
        yield ConfigResource(ResourceType.TOPIC, topic), leaders, followers
