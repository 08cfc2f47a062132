"""Subscribing by regular expressions."""

import pytest
from tests.support.consumer_world import GROUP, V1, ConsumerWorld

from ottla.coordination.group.consumer import regexes
from ottla.coordination.group.consumer.regexes import (
    NAMES_AT_ONCE,
    compile_regex,
    find_matches,
    names_at_once,
    timer_name,
)
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.coordinator_records.consumer_group import ConsumerGroupRegularExpressionKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@pytest.fixture
def world() -> ConsumerWorld:
    world = ConsumerWorld(apples=2, pears=1, plums=3)
    world.intervals = ConsumerIntervals(assignment_interval_ms=0)
    return world


def test_an_expression_matches_whole_names() -> None:
    assert find_matches("p", ("p", "pp")) == ["p"]
    assert find_matches("p.*s", ("pears", "plum", "plums")) == ["pears", "plums"]


def test_a_hostile_expression_takes_linear_time() -> None:
    assert find_matches("(a+)+b", ("a" * 200_000,)) == []


def test_the_topics_come_with_the_heartbeat_after(world: ConsumerWorld) -> None:
    answer = world.join("m", subscribed_topic_regex="p.*")
    assert (answer.member_epoch, world.assigned(answer)) == (1, {})
    answer = world.heartbeat("m", 1)
    assert (answer.member_epoch, world.assigned(answer)) == (2, {"pears": [0], "plums": [0, 1, 2]})


def test_names_and_expression_add_up(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="pe.*", subscribed_topic_names=("apples",))
    assert world.assigned(world.heartbeat("m", 2)) == {"apples": [0, 1], "pears": [0]}


@pytest.mark.parametrize("regex", ["(", "(?=a)", r"(a)\1", "a{1001}"])
def test_what_is_not_valid_is_refused(world: ConsumerWorld, regex: str) -> None:
    answer = world.join("m", subscribed_topic_regex=regex)
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert regex in answer.error_message
    assert not world.records()


def test_a_second_member_with_the_same_expression_gets_its_topics_at_once(world: ConsumerWorld) -> None:
    world.join("a", subscribed_topic_regex="p.*")
    world.heartbeat("a", 1)
    answer = world.join("b", subscribed_topic_regex="p.*")
    assert answer.member_epoch == 3


def test_a_new_topic_is_found_within_ten_seconds(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="p.*")
    world.heartbeat("m", 1)
    world.topics.create("peas", 1)
    world.topics_changed("peas", has_new=True)
    world.advance(5_000)
    world.heartbeat("m", 2)
    assert world.group().epoch == 2, "not so soon after the last time"
    world.advance(5_001)
    world.heartbeat("m", 2)
    answer = world.heartbeat("m", 2)
    assert world.assigned(answer) == {"pears": [0], "plums": [0, 1, 2], "peas": [0]}


def test_without_new_topics_expressions_are_resolved_again_after_the_interval(world: ConsumerWorld) -> None:
    world = ConsumerWorld(GroupSettings(regex_refresh_interval_ms=60_000), pears=1)
    world.join("m", subscribed_topic_regex="p.*")
    first = world.group().resolved_regexes["p.*"].timestamp_ms
    for _ in range(3):
        world.advance(20_000)
        world.heartbeat("m", world.group().members["m"].epoch)
        assert world.group().resolved_regexes["p.*"].timestamp_ms == first
    world.advance(20_000)
    world.heartbeat("m", world.group().members["m"].epoch)
    assert world.group().resolved_regexes["p.*"].timestamp_ms == first + 80_000


def test_topics_created_while_nobody_was_there_are_found(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="p.*")
    world.heartbeat("m", 1)
    world.topics.create("peas", 1)
    world.advance(11_000)
    world.crash()
    world.heartbeat("m", 2)
    assert "peas" in world.group().resolved_regexes["p.*"].topics


def test_the_last_member_takes_its_expression_along(world: ConsumerWorld) -> None:
    world.join("a", subscribed_topic_regex="p.*")
    world.join("b", subscribed_topic_regex="p.*")
    world.heartbeat("a", -1)
    assert "p.*" in world.group().resolved_regexes
    world.heartbeat("b", -1)
    assert not world.group().resolved_regexes
    last = [r for r in world.records() if isinstance(r.key, ConsumerGroupRegularExpressionKey)][-1]
    assert last.value is None


def test_a_member_may_go_over_to_names(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="p.*")
    world.heartbeat("m", 1)
    answer = world.heartbeat(
        "m", 2, subscribed_topic_regex="", subscribed_topic_names=("plums",),
        owned={"pears": [0], "plums": [0, 1, 2]},
    )  # fmt: skip
    assert world.assigned(answer) == {"plums": [0, 1, 2]}
    assert not world.group().resolved_regexes


def test_while_a_new_expression_is_not_resolved_its_member_reads_nothing(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="p.*")
    world.heartbeat("m", 1)
    answer = world.heartbeat("m", 2, subscribed_topic_regex="a.*", owned={"pears": [0]})
    assert world.assigned(answer) == {}
    assert "a.*" not in world.group().resolved_regexes, "ten seconds have not passed since the last time"


def test_many_topics_are_matched_in_slices(world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regexes, "NAMES_AT_ONCE", 2)
    for number in range(5):
        world.topics.create(f"t{number}", 1)
    join = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex="t.*",
        topic_partitions=(),
    )
    answers: list[object] = []
    world.coordinator.consumer_group_heartbeat(join, V1, world.clock.now_ms(), answers.append)
    slices = 0
    while timer_name(GROUP) in world.shard.state.env.timers:
        slices += 1
        world.coordinator.fire_timers()
    assert slices == 4
    assert world.group().resolved_regexes["t.*"].topics == {f"t{number}" for number in range(5)}


def test_what_matched_nothing_is_not_resolved_over_and_over(world: ConsumerWorld) -> None:
    world.join("m", subscribed_topic_regex="none")
    world.advance(30_000)
    written = len(world.records())
    world.heartbeat("m", 1)
    world.heartbeat("m", 1)
    assert len(world.records()) == written


@pytest.mark.parametrize(
    "regex", ["a{1,1000}" * 100, r"\pL" * 8000, r"(\pL{1,16})" * 100, "(a{1,1000})" * 100, "x{999}" * 6]
)
def test_expressions_that_compile_to_too_much_are_refused(regex: str) -> None:
    with pytest.raises(Refused) as refused:
        compile_regex(regex)
    assert refused.value.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    "regex", [".*", "[a-z]{3}-.*", r"orders\.\w{1,64}", "|".join(f"t{n}" for n in range(3000))]
)
def test_usual_expressions_are_not(regex: str) -> None:
    assert compile_regex(regex) is not None


def test_fewer_names_are_matched_at_once_by_a_large_expression() -> None:
    assert names_at_once(["orders.*"]) == NAMES_AT_ONCE
    assert names_at_once([".{1,1000}"]) < 10
