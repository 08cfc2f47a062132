"""Talk with Apache Kafka's group coordinator and with ours about the same: the answers are the same.

So are the records that both have written to `__consumer_offsets` when the talk is over, one by one.
"""

from collections.abc import Iterator

import pytest
from tests.differential.group_talks import UNKNOWN_ID, Talk, TalkFunction, differences, join_alone
from tests.java.oracle import Oracle
from tests.support.group_requests import (
    OTHER_TOPIC,
    TOPIC,
    commit_request,
    delete_offsets_request,
    delete_request,
    describe_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    list_request,
    old_fetch_request,
    subscription,
    sync_request,
)
from tests.support.ottla_node import OttlaNode

from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest

GROUP_KEY = 0


def find_coordinator(talk: Talk) -> None:
    for version in range(7):
        request = FindCoordinatorRequest(key="some-group", key_type=GROUP_KEY)
        if version >= 4:
            request = FindCoordinatorRequest(coordinator_keys=("a", "b", ""), key_type=GROUP_KEY)
        talk.ask("find a group's coordinator", request, version)


def join_refused(talk: Talk) -> None:
    for version in range(10):
        group = f"refused-{version}"
        talk.ask("no group", join_request(""), version)
        talk.ask("short session", join_request(group, session_timeout_ms=5_999), version)
        talk.ask("long session", join_request(group, session_timeout_ms=1_800_001), version)
        talk.ask("member of no group", join_request(group, "somebody"), version)
        talk.ask("no protocol type", join_request(group, protocol_type=""), version)
        talk.ask("no protocols", join_request(group, protocols=()), version)
        talk.ask("described", describe_request(group), 6)
        talk.ask("member of a new group", join_request(group, "somebody"), version)


def alone(talk: Talk) -> None:
    for version in range(10):
        group = f"alone-{version}"
        member, generation = join_alone(talk, group, version)
        heartbeat_version, sync_version = min(version, 4), min(version, 5)
        talk.ask("described while completing", describe_request(group), min(version, 6))
        talk.ask(
            "commit while completing",
            commit_request(group, {0: 1}, generation=generation, member_id=member),
            8,
        )
        talk.ask(
            "heartbeat while completing", heartbeat_request(group, generation, member), heartbeat_version
        )
        talk.ask("sync of another generation", sync_request(group, generation + 1, member), sync_version)
        talk.ask("sync of somebody", sync_request(group, generation, "somebody"), sync_version)
        talk.ask("sync", sync_request(group, generation, member, {member: b"mine"}), sync_version)
        talk.ask("sync again", sync_request(group, generation, member), sync_version)
        talk.ask("heartbeat", heartbeat_request(group, generation, member), heartbeat_version)
        talk.ask("old heartbeat", heartbeat_request(group, generation - 1, member), heartbeat_version)
        talk.ask("heartbeat of somebody", heartbeat_request(group, generation, "somebody"), heartbeat_version)
        talk.ask("described", describe_request(group, "no-such-group"), min(version, 6))
        talk.ask("deleted while in use", delete_request(group), min(version, 2))
        talk.ask("joined by others", join_request(group, protocol_type="other"), version)
        talk.ask("joined with others' protocols", join_request(group, protocols=(("x", b""),)), version)
        if version < 3:
            talk.ask("leave", LeaveGroupRequest(group_id=group, member_id=member), version)
            talk.ask("leave again", LeaveGroupRequest(group_id=group, member_id=member), version)
        else:
            leave = leave_request(group, (member, None), ("somebody", None), ("", "instance"))
            talk.ask("leave", leave, min(version, 5))
            talk.ask("leave again", leave, min(version, 5))
        talk.ask("described when empty", describe_request(group), min(version, 6))
        talk.ask("heartbeat when empty", heartbeat_request(group, generation, member), heartbeat_version)
        talk.ask("sync when empty", sync_request(group, generation, member), sync_version)
        talk.ask("joined again", join_request(group, member), version)
        talk.ask("deleted", delete_request(group), min(version, 2))
        talk.ask("deleted again", delete_request(group), min(version, 2))
        talk.ask("described when gone", describe_request(group), min(version, 6))


def no_time_to_sync(talk: Talk) -> None:
    for version in (1, 4, 9):
        for timeout_ms in (0, -1, -(1 << 31)):
            group = f"no-time-{version}{timeout_ms}"
            request = replace(join_request(group), rebalance_timeout_ms=timeout_ms)
            answer = talk.ask("join", request, version)
            if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
                talk.ask("join with the id", replace(request, member_id=answer.member_id), version)
            while talk.client().ask(describe_request(group)).groups[0].group_state != "Empty":
                pass
            talk.ask("described when nobody is left", describe_request(group))


def sync_and_protocols(talk: Talk) -> None:
    group = "protocols"
    member, generation = join_alone(talk, group)
    for kind, name in (("other", "range"), ("consumer", "other"), (None, "range"), ("consumer", None)):
        request = sync_request(group, generation, member, protocol_type=kind, protocol_name=name)
        talk.ask(f"sync with {kind} {name}", request, 5)
    talk.ask("sync without a group", sync_request("", generation, member), 5)
    talk.ask("sync of no such group", sync_request("no-such-group", generation, member), 5)
    talk.ask("heartbeat without a group", heartbeat_request("", generation, member))
    talk.ask("heartbeat of no such group", heartbeat_request("no-such-group", generation, member))
    talk.ask("leave without a group", leave_request("", (member, None)))
    talk.ask("leave no such group", leave_request("no-such-group", (member, None)))
    talk.ask("leave no such group", LeaveGroupRequest(group_id="no-such-group", member_id=member), 1)
    talk.ask("sync with nothing for the member", sync_request(group, generation, member, {"somebody": b"x"}))
    talk.ask("described", describe_request(group))
    talk.ask("leave", leave_request(group, (member, None)))


def two_members(talk: Talk) -> None:
    group = "two-members"
    first, generation = join_alone(talk, group)
    talk.ask("first syncs", sync_request(group, generation, first, {first: b"all"}))
    required = talk.ask("second asks", join_request(group), who="second")
    second = required.member_id
    talk.ask("heartbeat while an id is pending", heartbeat_request(group, generation, first))
    talk.send("second", join_request(group, second))
    while talk.client().ask(heartbeat_request(group, generation, first)).error_code == 0:
        pass
    talk.ask("heartbeat while preparing", heartbeat_request(group, generation, first))
    talk.ask("described while preparing", describe_request(group))
    talk.ask("sync while preparing", sync_request(group, generation, first))
    commit = commit_request(group, {0: 5}, generation=generation, member_id=first)
    talk.ask("commit while preparing", commit, 9)
    again = talk.ask("first joins again", join_request(group, first))
    talk.receive("second has joined", "second")
    generation = again.generation_id
    talk.ask("commit while completing", replace(commit, generation_id_or_member_epoch=generation), 9)
    talk.ask("heartbeat while completing", heartbeat_request(group, generation, second))
    talk.ask("first joins as it did while completing", join_request(group, first))
    talk.ask("second joins as it did while completing", join_request(group, second))
    talk.send("second", sync_request(group, generation, second))
    talk.ask(
        "first brings the assignment", sync_request(group, generation, first, {first: b"a", second: b"b"})
    )
    talk.receive("second gets it", "second")
    talk.ask("described when stable", describe_request(group))
    talk.ask("second joins as it did when stable", join_request(group, second), who="second")
    talk.ask("commit of the last generation", commit, 9)
    talk.ask("second leaves", leave_request(group, (second, None)))
    talk.ask("first is told", heartbeat_request(group, generation, first))
    talk.ask("first joins alone", join_request(group, first))
    talk.ask("first leaves", leave_request(group, (first, None)))
    talk.ask("described when empty", describe_request(group))


def leader_joins_again(talk: Talk) -> None:
    group = "leader-again"
    member, generation = join_alone(talk, group)
    talk.ask("sync", sync_request(group, generation, member, {member: b"all"}))
    talk.ask("the leader joins again as it did", join_request(group, member))
    narrower = (("roundrobin", subscription(TOPIC, OTHER_TOPIC)),)
    talk.ask("with another protocol while completing", join_request(group, member, protocols=narrower))
    unknown = (("sticky", subscription(TOPIC)),)
    talk.ask("with a protocol nobody knows", join_request(group, member, protocols=unknown))
    talk.ask("leave", leave_request(group, (member, None)))


def static_members(talk: Talk) -> None:
    for version in (5, 8, 9):
        group = f"static-{version}"
        old = talk.ask("join", join_request(group, instance_id="one"), version)
        member, generation = old.member_id, old.generation_id
        sync = sync_request(group, generation, member, {member: b"all"}, instance_id="one")
        talk.ask("sync", sync, 5)
        talk.ask("described", describe_request(group), 6)
        new = talk.ask("back under a new id", join_request(group, instance_id="one"), version)
        talk.ask("the old id syncs", sync, 5)
        talk.ask("the old id beats", heartbeat_request(group, generation, member, "one"))
        commit = commit_request(group, {1: 7}, generation=generation, member_id=member, instance_id="one")
        talk.ask("the old id commits", commit, 9)
        talk.ask("the old id leaves", leave_request(group, (member, "one")))
        talk.ask("the old id joins", join_request(group, member, instance_id="one"), version)
        talk.ask("the new id syncs", replace(sync, member_id=new.member_id), 5)
        talk.ask("the new id beats", heartbeat_request(group, new.generation_id, new.member_id, "one"))
        talk.ask("the new id commits", replace(commit, member_id=new.member_id), 9)
        talk.ask("an unknown instance beats", heartbeat_request(group, generation, new.member_id, "two"))
        talk.ask("an unknown instance joins", join_request(group, new.member_id, instance_id="two"), version)
        talk.ask("an unknown instance is removed", leave_request(group, ("", "two")))
        changed = (("roundrobin", subscription(TOPIC)),)
        rebalanced = talk.ask(
            "back with another protocol", join_request(group, instance_id="one", protocols=changed), version
        )
        talk.ask("described while completing", describe_request(group), 6)
        talk.ask("back while completing", join_request(group, instance_id="one", protocols=changed), version)
        talk.ask("removed by its instance id", leave_request(group, ("", "one")))
        talk.ask("described when empty", describe_request(group), 6)
        talk.ask("beats when empty", heartbeat_request(group, rebalanced.generation_id, new.member_id, "one"))


def commits(talk: Talk) -> None:
    for version in range(2, 10):
        group = f"commits-{version}"
        talk.ask(
            "of a group that is not", commit_request(group, {0: 1}, generation=3, member_id="m"), version
        )
        talk.ask("simple", commit_request(group, {0: 10, 2: 12}), version)
        talk.ask("without a note", commit_request(group, {1: 11}, metadata=None), version)
        talk.ask("unknown topic", commit_request(group, {0: 1}, topic="no-such-topic"), version)
        talk.ask("unknown partitions", commit_request(group, {0: 20, 7: 1, 8: 1}), version)
        talk.ask("a long note", commit_request(group, {0: 30, 1: 31}, metadata="x" * 4097), version)
        talk.ask("a note just short enough", commit_request(group, {0: 40}, metadata="x" * 4096), version)
        talk.ask("a note that Java finds long", commit_request(group, {0: 41}, metadata="😀" * 2049), version)
        talk.ask("a negative offset", commit_request(group, {0: -5}), version)
        talk.ask("nothing", replace(commit_request(group, {}), topics=()), version)
        talk.ask("of a member", commit_request(group, {0: 1}, generation=1, member_id="m"), version)
        talk.ask("of a member without a generation", commit_request(group, {0: 77}, member_id="m"), version)
        talk.ask("to no group", commit_request("", {0: 1}), version)
        if version < 5:
            talk.ask(
                "with a retention", replace(commit_request(group, {2: 9}), retention_time_ms=60_000), version
            )
        if version >= 7:
            talk.ask(
                "of an instance",
                commit_request(group, {0: 1}, generation=1, member_id="m", instance_id="i"),
                version,
            )
        talk.ask("fetched", fetch_request(group), 8)
    member, generation = join_alone(talk, "commits-in-use")
    talk.ask("sync", sync_request("commits-in-use", generation, member, {member: b"all"}))
    for version in range(2, 10):
        talk.ask("simple, to a group in use", commit_request("commits-in-use", {0: 1}), version)
        talk.ask(
            "in use",
            commit_request("commits-in-use", {0: version}, generation=generation, member_id=member),
            version,
        )
    talk.ask("leave", leave_request("commits-in-use", (member, None)))


def commits_by_id(talk: Talk) -> None:
    group = "commits-by-id"
    talk.ask("simple", commit_request(group, {0: 10}, topic_id=talk.topic_id), 10)
    talk.ask("unknown id", commit_request(group, {0: 10, 1: 11}, topic_id=UNKNOWN_ID), 10)
    talk.ask("unknown partition", commit_request(group, {0: 12, 9: 10}, topic_id=talk.topic_id), 10)
    talk.ask("fetched", fetch_request(group, topic_ids={talk.topic_id: (0, 1), UNKNOWN_ID: (0,)}), 10)
    talk.ask("all fetched", fetch_request(group), 10)
    talk.ask("fetched by name", fetch_request(group), 9)


def fetches(talk: Talk) -> None:
    group = "fetches"
    talk.ask("commit", commit_request(group, {0: 10, 1: 11}), 8)
    talk.ask("commit", commit_request(group, {2: 5}, topic=OTHER_TOPIC, metadata=None), 8)
    some = {TOPIC: (0, 2, 9), OTHER_TOPIC: (2,), "no-such-topic": (0,)}
    for version in range(1, 8):
        talk.ask("some", old_fetch_request(group, some), version)
        talk.ask("none", old_fetch_request(group, {}), version)
        talk.ask("some of no group", old_fetch_request("no-such-group", some), version)
        talk.ask("of the group without a name", old_fetch_request("", {TOPIC: (2,)}), version)
        if version >= 2:
            talk.ask("all", old_fetch_request(group, None), version)
            talk.ask("all of no group", old_fetch_request("no-such-group", None), version)
    for version in (8, 9):
        talk.ask("some", fetch_request(group, topics=some), version)
        talk.ask("all of several", fetch_request(group, "no-such-group"), version)
        talk.ask("some of several", fetch_request(group, "no-such-group", topics=some), version)
        talk.ask("stable", fetch_request(group, topics=some, require_stable=True), version)
        talk.ask("of nobody", fetch_request(), version)


def deletions(talk: Talk) -> None:
    group = "deletions"
    talk.ask("commit to the group without a name", commit_request("", {0: 1}), 8)
    talk.ask("offsets of no group", delete_offsets_request("no-such-group", TOPIC, 0))
    talk.ask("offsets of a group without a name", delete_offsets_request("", TOPIC, 0))
    talk.ask("commit", commit_request(group, {0: 10, 1: 11}), 8)
    talk.ask("one offset", delete_offsets_request(group, TOPIC, 0))
    talk.ask("one offset again", delete_offsets_request(group, TOPIC, 0))
    talk.ask("unknown topic", delete_offsets_request(group, "no-such-topic", 0))
    talk.ask("unknown partition", delete_offsets_request(group, TOPIC, 1, 9))
    talk.ask("fetched", fetch_request(group), 8)
    member, generation = join_alone(talk, group)
    talk.ask("sync", sync_request(group, generation, member, {member: b"all"}))
    commit = commit_request(group, {0: 1}, topic=OTHER_TOPIC, generation=generation, member_id=member)
    talk.ask("commit to a topic that nobody reads", commit, 8)
    talk.ask("offsets of a topic that is read", delete_offsets_request(group, TOPIC, 0))
    talk.ask("offsets of a topic that is not", delete_offsets_request(group, OTHER_TOPIC, 0))
    talk.ask("leave", leave_request(group, (member, None)))
    other, generation = "deletions-other", 0
    required = talk.ask("join", join_request(other, protocol_type="connect", protocols=(("v0", b""),)))
    joined = talk.ask(
        "join", join_request(other, required.member_id, protocol_type="connect", protocols=(("v0", b""),))
    )
    sync = sync_request(
        other, joined.generation_id, joined.member_id, protocol_type="connect", protocol_name="v0"
    )
    talk.ask("sync", sync)
    talk.ask("offsets of a group of another type", delete_offsets_request(other, TOPIC, 0))
    talk.ask("leave", leave_request(other, (joined.member_id, None)))
    for version in range(3):
        talk.ask("groups", delete_request("", "no-such-group"), version)
    talk.ask("both", delete_request(group, other, "no-such-group"))


def lists(talk: Talk) -> None:
    group = "lists"
    talk.ask("commit", commit_request(group, {0: 10}), 8)
    member, _ = join_alone(talk, "lists-in-use")
    for version in range(6):
        listed = talk.client().ask(list_request(), version)
        own = tuple(sorted(entry for entry in listed.groups if entry.group_id in (group, "lists-in-use")))
        talk.note("listed", replace(listed, groups=own), version)
    filters = [
        (("Empty",), ()), (("empty ", "DEAD"), ()), (("CompletingRebalance",), ()), (("nonsense",), ()),
        ((), ("classic",)), ((), ("Consumer",)), ((), ("CLASSIC", "share")), ((), ("nonsense",)),
        (("Empty",), ("classic",)), (("Stable",), ("classic",)),
    ]  # fmt: skip
    for states, types in filters:
        listed = talk.client().ask(list_request(states, types), 5)
        own = tuple(sorted(entry for entry in listed.groups if entry.group_id in (group, "lists-in-use")))
        talk.note(f"listed {states} {types}", replace(listed, groups=own), 5)
    talk.ask("leave", leave_request("lists-in-use", (member, None)))


TALKS: list[TalkFunction] = [
    find_coordinator, join_refused, alone, no_time_to_sync, sync_and_protocols, two_members,
    leader_joins_again, static_members, commits, commits_by_id, fetches, deletions, lists,
]  # fmt: skip


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A node of ours with what concerns groups set as on Apache Kafka."""
    properties = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with OttlaNode(tmp_path_factory.mktemp("ottla"), properties) as node:
        yield node


@pytest.mark.parametrize("talk_about", TALKS, ids=lambda talk: talk.__name__)
def test_answers_are_those_of_apache_kafka(
    oracle: Oracle, request: pytest.FixtureRequest, ottla: OttlaNode, talk_about: TalkFunction
) -> None:
    def start() -> str:
        bootstrap: str = request.getfixturevalue("apache_kafka").bootstrap
        return bootstrap

    found = differences(oracle, start, ottla.bootstrap, talk_about)
    assert not found, found
