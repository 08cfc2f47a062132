"""Talk with Apache Kafka's group coordinator and with ours about consumer groups: the answers are the same.

So are the records that both have written to `__consumer_offsets` when the talk is over, one by one. Members
ask for the range assignor, whose assignments are determined, and targets are computed at once.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from tests.differential.group_talks import Talk, TalkFunction, differences
from tests.java.oracle import Oracle
from tests.support.group_requests import (
    OTHER_TOPIC,
    TOPIC,
    commit_request,
    delete_request,
    describe_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    list_request,
    sync_request,
)
from tests.support.ottla_node import OttlaNode

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import encode
from ottla.wire.consumer_protocol import AssignedTopicPartitions, ConsumerProtocolAssignment
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP_RESOURCE = 32
SET = 0
UNKNOWN_ID = Uuid(b"0123456789abcdef")


def beat(group: str, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def join(group: str, member: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    defaults: dict[str, Any] = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": topics or (TOPIC,),
        "topic_partitions": (),
        "server_assignor": "range",
    }
    return beat(group, member, 0, **{**defaults, **fields})


def describe(*groups: str) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False)


def configure(talk: Talk, group: str, **configs: str) -> None:
    """Set configs of a group."""
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=group,
        configs=tuple(
            AlterableConfig(name=name, config_operation=SET, value=value) for name, value in configs.items()
        ),
    )
    talk.ask("configure", IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))


def owned(talk: Talk, *partitions: int) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(topic_id=talk.topic_id, partitions=partitions),) if partitions else ()


def refused(talk: Talk) -> None:
    group = "848-refused"
    some = (TopicPartitions(topic_id=UNKNOWN_ID, partitions=(0,)),)
    for version in (0, 1):
        for label, request in {
            "no member id": join(group, ""),
            "blank member id": join(group, " "),
            "no group": join("", "m"),
            "empty instance": join(group, "m", instance_id=""),
            "empty rack": join(group, "m", rack_id=""),
            "no rebalance timeout": join(group, "m", rebalance_timeout_ms=-1),
            "partitions while joining": join(group, "m", topic_partitions=some),
            "no partitions while joining": join(group, "m", topic_partitions=None),
            "no subscription": join(group, "m", subscribed_topic_names=None),
            "unknown assignor": join(group, "m", server_assignor="mine"),
            "no member id in an epoch": beat(group, "", 1),
            "no member id when leaving": beat(group, "", -1),
            "leaving for now without an instance": beat(group, "m", -2),
            "an epoch that cannot be": beat(group, "m", -3),
            "an epoch of no group": beat(group, "m", 1),
            "leaving no group": beat(group, "m", -1),
            "leaving no group for now": beat(group, "m", -2, instance_id="i"),
        }.items():
            if version == 0 and label == "no member id":
                continue
            talk.ask(label, request, version)
        group = "848-refused-more"
    for regex in ("(", "(?=a)", "a{1001}", "[z-a]"):
        request = join(group, "m", subscribed_topic_regex=regex, subscribed_topic_names=())
        talk.ask(f"regex {regex}", request)
    talk.ask("described", describe(group, ""))


def one_member(talk: Talk) -> None:
    group = "848-one"
    talk.ask("join", join(group, "a"))
    talk.ask("described", describe(group))
    talk.ask("beat", beat(group, "a", 2))
    talk.ask("beat with what it owns", beat(group, "a", 2, topic_partitions=owned(talk, 0, 1, 2)))
    full = replace(join(group, "a"), member_epoch=2, topic_partitions=owned(talk, 0))
    talk.ask("full request", full)
    talk.ask("epoch of the future", beat(group, "a", 3))
    talk.ask("epoch of the past", beat(group, "a", 1))
    talk.ask("somebody", beat(group, "x", 2))
    talk.ask("another rack", beat(group, "a", 2, rack_id="r"))
    talk.ask("another topic", beat(group, "a", 2, subscribed_topic_names=(TOPIC, OTHER_TOPIC)))
    talk.ask("the epoch before", beat(group, "a", 2, topic_partitions=owned(talk, 0, 1, 2)))
    talk.ask("the epoch before without what it owns", beat(group, "a", 2))
    talk.ask("the epoch before with too much", beat(group, "a", 2, topic_partitions=owned(talk, 7)))
    talk.ask("a topic less", beat(group, "a", 3, subscribed_topic_names=(TOPIC,)))
    talk.ask("described while revoking", describe(group))
    talk.ask("not revoked yet", beat(group, "a", 3))
    talk.ask("revoked", beat(group, "a", 3, topic_partitions=owned(talk, 0, 1, 2)))
    talk.ask("rejoin", join(group, "a"))
    talk.ask("no topic at all", beat(group, "a", 4, subscribed_topic_names=()))
    talk.ask("revoked everything", beat(group, "a", 4, topic_partitions=()))
    talk.ask("an unknown topic", beat(group, "a", 5, subscribed_topic_names=("no-such-topic",)))
    talk.ask("described", describe(group))
    talk.ask("as a classic group", describe_request(group), 5)
    talk.ask("as a classic group", describe_request(group), 6)
    talk.ask("delete in use", delete_request(group))
    talk.ask("leave", beat(group, "a", -1))
    talk.ask("leave again", beat(group, "a", -1))
    talk.ask("described when empty", describe(group))
    talk.ask("back", join(group, "a"))
    talk.ask("leave", beat(group, "a", -1))
    talk.ask("delete", delete_request(group))
    talk.ask("described when gone", describe(group))


def two_members(talk: Talk) -> None:
    group = "848-two"
    talk.ask("a joins", join(group, "a"))
    talk.ask("b joins", join(group, "b"))
    talk.ask("described", describe(group))
    talk.ask("b waits", beat(group, "b", 3))
    talk.ask("a is told", beat(group, "a", 2))
    talk.ask("b still waits", beat(group, "b", 3))
    talk.ask("described", describe(group))
    talk.ask("a has not revoked", beat(group, "a", 2, topic_partitions=owned(talk, 0, 1, 2)))
    talk.ask("a has revoked", beat(group, "a", 2, topic_partitions=owned(talk, 0, 1)))
    talk.ask("b gets it", beat(group, "b", 3))
    talk.ask("described when stable", describe(group))
    talk.ask("c joins without topics", join(group, "c", subscribed_topic_names=()))
    talk.ask("c wants the other topic", beat(group, "c", 3, subscribed_topic_names=(OTHER_TOPIC,)))
    talk.ask("a goes on", beat(group, "a", 3))
    talk.ask("b leaves", beat(group, "b", -1))
    talk.ask("a gets it back", beat(group, "a", 4))
    talk.ask("c goes on", beat(group, "c", 4))
    talk.ask("described at last", describe(group))
    talk.ask("a leaves", beat(group, "a", -1))
    talk.ask("c leaves", beat(group, "c", -1))


def static_members(talk: Talk) -> None:
    group = "848-static"
    talk.ask("join", join(group, "a", instance_id="i"))
    talk.ask("another with its instance", join(group, "b", instance_id="i"))
    talk.ask("again with its instance", join(group, "a", instance_id="i"))
    talk.ask("beat without the instance", beat(group, "a", 2))
    talk.ask("beat with an unknown instance", beat(group, "a", 2, instance_id="j"))
    talk.ask("beat of another", beat(group, "b", 2, instance_id="i"))
    talk.ask("leave of another", beat(group, "b", -2, instance_id="i"))
    talk.ask("leave for now", beat(group, "a", -2, instance_id="i"))
    talk.ask("described while away", describe(group))
    talk.ask("beat while away", beat(group, "a", 2, instance_id="i"))
    talk.ask("back under another id", join(group, "b", instance_id="i"))
    talk.ask("described", describe(group))
    talk.ask("the old id beats", beat(group, "a", 2, instance_id="i"))
    talk.ask("the old id leaves", beat(group, "a", -1, instance_id="i"))
    talk.ask("away again", beat(group, "b", -2, instance_id="i"))
    talk.ask("back with other topics", join(group, "c", OTHER_TOPIC, instance_id="i"))
    talk.ask("and so on", beat(group, "c", 3, instance_id="i"))
    talk.ask("dynamic with the id of a static one", join(group, "c"))
    talk.ask("removed by its instance id", leave_request(group, ("", "i"), ("", "i"), ("x", None)))
    talk.ask("described when empty", describe(group))


def commits_and_fetches(talk: Talk) -> None:
    group = "848-commits"
    talk.ask("a joins", join(group, "a"))
    talk.ask("b joins", join(group, "b"))
    talk.ask("a revokes", beat(group, "a", 2, topic_partitions=owned(talk, 0, 1)))
    for epoch in (-1, 0, 1, 2, 3, 4):
        for version in (8, 9):
            commit = commit_request(group, {0: 10 + epoch}, generation=epoch, member_id="a")
            talk.ask(f"a commits in epoch {epoch}", commit, version)
        commit = commit_request(group, {2: 10 + epoch}, generation=epoch, member_id="a")
        talk.ask(f"a commits what it has not in epoch {epoch}", commit, 9)
        by_id = commit_request(group, {0: 5, 1: 6}, generation=epoch, member_id="a", topic_id=talk.topic_id)
        talk.ask(f"a commits by id in epoch {epoch}", by_id, 10)
    talk.ask("somebody commits", commit_request(group, {0: 1}, generation=3, member_id="x"), 9)
    talk.ask("nobody commits", commit_request(group, {0: 1}), 9)
    for member, epoch in (("a", 3), ("a", 2), ("a", -1), ("x", 3), (None, -1)):
        request = fetch_request(group, topics={TOPIC: (0, 1, 2)})
        groups = tuple(replace(one, member_id=member, member_epoch=epoch) for one in request.groups)
        talk.ask(f"{member} fetches in epoch {epoch}", replace(request, groups=groups), 9)
    talk.ask("a leaves", beat(group, "a", -1))
    talk.ask("b leaves", beat(group, "b", -1))
    talk.ask("nobody commits to an empty group", commit_request(group, {0: 1}), 9)
    talk.ask("a commits to an empty group", commit_request(group, {0: 1}, generation=3, member_id="a"), 9)
    talk.ask("delete", delete_request(group))


def expressions(talk: Talk) -> None:
    group = "848-regex"
    expression = f"{TOPIC}|{OTHER_TOPIC}"
    request = join(group, "a", subscribed_topic_regex=expression, subscribed_topic_names=())
    talk.ask("join", request)
    while (answer := talk.client().ask(beat(group, "a", 1))).member_epoch == 1:
        assert answer.error_code is ErrorCode.NONE
    talk.note("resolved", answer, None)
    talk.ask("described", describe(group))
    second = join(group, "b", subscribed_topic_regex=expression, subscribed_topic_names=())
    talk.ask("the same expression", second)
    talk.ask("names instead", beat(group, "b", 3, subscribed_topic_regex="", subscribed_topic_names=(TOPIC,)))
    talk.ask("a goes on", beat(group, "a", 2, topic_partitions=()))
    talk.ask("a leaves", beat(group, "a", -1))
    talk.ask("b leaves", beat(group, "b", -1))


def topics_that_change(talk: Talk) -> None:
    group, topic = "848-topics", "group-talks-changing"
    talk.ask("join", join(group, "a", topic))
    creatable = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=())
    client = talk.client()
    client.ask(CreateTopicsRequest(topics=(creatable,)))
    talk.note("created", _until_epoch(talk, group, 2, 3), None)
    more = CreatePartitionsTopic(name=topic, partition_count=3, assignments=None)
    client.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=10_000, validate_only=False))
    talk.note("grown", _until_epoch(talk, group, 3, 4), None)
    gone = DeleteTopicState(name=topic, topic_id=ZERO_UUID)
    client.ask(DeleteTopicsRequest(topics=(gone,), timeout_ms=10_000))
    while (answer := client.ask(beat(group, "a", 4))).assignment is None:
        assert answer.error_code is ErrorCode.NONE
    talk.note("deleted", answer, None)
    talk.ask("given up", beat(group, "a", 4, topic_partitions=()))
    talk.ask("described", describe(group))
    talk.ask("leave", beat(group, "a", -1))


def _until_epoch(talk: Talk, group: str, epoch: int, next_epoch: int) -> Any:
    while (answer := talk.client().ask(beat(group, "a", epoch))).member_epoch == epoch:
        assert answer.error_code is ErrorCode.NONE
    assert answer.member_epoch == next_epoch
    return answer


def upgrade(talk: Talk) -> None:
    group = "848-upgrade"
    required = talk.ask("a classic member asks", join_request(group))
    joined = talk.ask("and joins", join_request(group, required.member_id))
    old = joined.member_id
    everything = AssignedTopicPartitions(topic=TOPIC, partitions=(0, 1, 2))
    assignment = b"\x00\x03" + encode(ConsumerProtocolAssignment(assigned_partitions=(everything,)), 3)
    talk.ask("it syncs", sync_request(group, 1, old, {old: assignment}))
    talk.ask("it beats", heartbeat_request(group, 1, old))
    talk.ask("not a consumer group yet", describe(group))
    talk.ask("an epoch of a classic group", beat(group, "z", 1))
    talk.ask("a new member joins", join(group, "z"))
    talk.ask("described", describe(group))
    talk.ask("the old one is told", heartbeat_request(group, 1, old))
    talk.ask("it syncs too early", sync_request(group, 1, old))
    talk.ask("it joins again", join_request(group, old))
    talk.ask("it syncs", sync_request(group, 2, old))
    talk.ask("it beats", heartbeat_request(group, 2, old))
    talk.ask("the new one goes on", beat(group, "z", 2))
    talk.ask("it commits", commit_request(group, {0: 5}, generation=2, member_id=old), 8)
    talk.ask("it commits in an old generation", commit_request(group, {0: 6}, generation=1, member_id=old), 8)
    talk.ask("others' protocols", join_request(group, protocols=(("x", b""),)))
    talk.ask("another type", join_request(group, protocol_type="other"))
    talk.ask("described", describe(group))
    talk.ask("the new one leaves", beat(group, "z", -1))
    talk.ask("classic again", describe_request(group))
    talk.ask("the old one is told", heartbeat_request(group, 2, old))
    again = talk.ask("it joins again", join_request(group, old))
    talk.ask("it syncs", sync_request(group, again.generation_id, old, {old: assignment}))
    talk.ask("it leaves", leave_request(group, (old, None)))
    talk.ask("described when empty", describe_request(group))
    talk.ask("the new one is back", join(group, "z"))
    talk.ask("described", describe(group))
    talk.ask("it leaves", beat(group, "z", -1))
    required = talk.ask("classic joins an empty consumer group", join_request(group))
    joined = talk.ask("and joins", join_request(group, required.member_id))
    talk.ask("described", describe_request(group))
    talk.ask("it leaves", leave_request(group, (joined.member_id, None)))


def lists(talk: Talk) -> None:
    group = "848-lists"
    talk.ask("join", join(group, "a"))
    for states, types in (((), ("consumer",)), (("stable",), ()), (("empty",), ("consumer",)), ((), ())):
        listed = talk.client().ask(list_request(states, types), 5)
        own = tuple(entry for entry in listed.groups if entry.group_id == group)
        talk.note(f"listed {states} {types}", replace(listed, groups=own), 5)
    talk.ask("leave", beat(group, "a", -1))


def own_configs(talk: Talk) -> None:
    group = "848-configs"
    talk.ask("join", join(group, "a"))
    for interval_ms in (7_000, 8_000):
        configure(talk, group, **{"consumer.heartbeat.interval.ms": str(interval_ms)})
        # Apache Kafka's broker learns of it a little later.
        while talk.client().ask(beat(group, "a", 2)).heartbeat_interval_ms != interval_ms:
            pass
    configure(talk, group, **{"consumer.heartbeat.interval.ms": "1"})
    configure(talk, group, **{"consumer.session.timeout.ms": "100000000"})
    talk.ask("leave", beat(group, "a", -1))


TALKS: list[TalkFunction] = [
    refused, one_member, two_members, static_members, commits_and_fetches, expressions, topics_that_change,
    upgrade, lists, own_configs,
]  # fmt: skip


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A node of ours with what concerns groups set as on Apache Kafka."""
    properties = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "group.consumer.session.timeout.ms": "50000",
        "group.consumer.assignment.interval.ms": "0",
    }
    with OttlaNode(tmp_path_factory.mktemp("ottla"), properties) as node:
        yield node


@pytest.mark.parametrize("talk_about", TALKS, ids=lambda talk: talk.__name__)
def test_answers_are_those_of_apache_kafka(
    oracle: Oracle, request: pytest.FixtureRequest, ottla: OttlaNode, talk_about: TalkFunction
) -> None:
    def start() -> str:
        bootstrap: str = request.getfixturevalue("apache_kafka").bootstrap
        return bootstrap

    found = differences(oracle, start, ottla.bootstrap, talk_about, _sorted_where_order_is_chance)
    assert not found, found


def _sorted_where_order_is_chance(records: list[str]) -> Iterator[str]:
    """Sort records of one kind that follow each other: Kafka takes members and offsets from hash maps."""
    for _, same_kind in groupby(records, lambda text: re.findall(r"'(\w+)':", text)):
        yield from sorted(same_kind)
