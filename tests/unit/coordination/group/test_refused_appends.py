"""A log that refuses records leaves everything as it was: deciding changes nothing, effects come after."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.consumer_world import GROUP, ConsumerWorld
from tests.support.group_requests import commit_request, delete_offsets_request, join_request

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.deadlines import RETRY_MS
from ottla.wire.error_code import ErrorCode


def seen(world: ConsumerWorld) -> Any:
    """Return all that a shard has in memory: groups, offsets, and when which timer fires."""
    state = world.shard.state
    timers = {name: timer.deadline_ms for name, timer in state.env.timers._live.items()}
    groups = {
        group_id: repr(sorted(vars(group).items())) if isinstance(group, ConsumerGroup) else repr(group)
        for group_id, group in state.groups.items()
    }
    return groups, state.offsets.all(), timers


def joins(world: ConsumerWorld) -> Any:
    return world.join("b")


def subscribes_to_more(world: ConsumerWorld) -> Any:
    return world.heartbeat("a", 2, subscribed_topic_names=("orders", "other"))


def subscribes_by_an_expression(world: ConsumerWorld) -> Any:
    return world.heartbeat("a", 2, subscribed_topic_regex="o.*")


def learns_of_a_changed_topic(world: ConsumerWorld) -> Any:
    world.topics.grow("orders", 9)
    return world.heartbeat("a", 2)


def leaves(world: ConsumerWorld) -> Any:
    return world.heartbeat("a", -1)


def commits(world: ConsumerWorld) -> Any:
    request = commit_request(GROUP, {0: 7}, generation=2, member_id="a", topic_id=world.id_of("orders"))
    return world.ask("commit_offsets", request).topics[0].partitions[0]


def commits_for_a_new_group(world: ConsumerWorld) -> Any:
    return world.ask("commit_offsets", commit_request("new", {0: 7})).topics[0].partitions[0]


def joins_a_new_classic_group(world: ConsumerWorld) -> Any:
    return world.ask("join_group", join_request("classic"))


def deletes_offsets(world: ConsumerWorld) -> Any:
    return world.ask("delete_offsets", delete_offsets_request(GROUP, "other", 0))


REQUESTS = [
    joins,
    subscribes_to_more,
    subscribes_by_an_expression,
    learns_of_a_changed_topic,
    leaves,
    commits,
    commits_for_a_new_group,
    joins_a_new_classic_group,
    deletes_offsets,
]


@pytest.mark.parametrize("ask", REQUESTS, ids=lambda ask: ask.__name__)
def test_a_refused_append_leaves_everything_as_it_was(ask: Callable[[ConsumerWorld], Any]) -> None:
    world = ConsumerWorld()
    assert world.join("a").member_epoch == 2
    request = commit_request(
        GROUP, {0: 1}, topic="other", generation=2, member_id="a", topic_id=world.id_of("other")
    )
    world.ask("commit_offsets", request)
    world.topics_changed("orders")
    world.advance(1)
    before = seen(world)
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert ask(world).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert seen(world) == before
    world.logs[0].refusal = None
    assert ask(world).error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
    assert seen(world) != before, "otherwise nothing was to be refused"


def test_a_member_whose_session_ends_while_nothing_can_be_written_is_taken_out_as_soon_as_it_can() -> None:
    world = ConsumerWorld()
    assert world.join("a").member_epoch == 2
    world.logs[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    world.advance(45_000)
    world.advance(10_000)
    assert set(world.group().members) == {"a"}
    world.logs[0].refusal = None
    world.advance(RETRY_MS)
    assert not world.group().members
