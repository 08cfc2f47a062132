"""What a member of a streams group claims is held against what it was given, and told to those who ask."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.coordination.group.environment import Client
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.streams.claims import check_owned, known_member, owned, updated
from ottla.coordination.group.streams.endpoints import partitions_by_endpoint
from ottla.coordination.group.streams.member import Assignment, Member
from ottla.coordination.group.streams.tasks import HeldTasks
from ottla.wire.coordinator_records.streams_group import Endpoint as KnownEndpoint
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)

HELD = HeldTasks(active={"0": {0: 5, 1: 5}}, standby={"1": frozenset({2})}, warmup={})
CLIENT = Client("app", "/10.0.0.1", 0)


def _ask(epoch: int = 5, member_id: str = "m", **said: Any) -> StreamsGroupHeartbeatRequest:
    named = {
        name: tuple(TaskIds(subtopology_id=one, partitions=numbers) for one, numbers in tasks)
        if name.endswith("_tasks") and tasks is not None
        else tasks
        for name, tasks in said.items()
    }
    defaults: dict[str, Any] = {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None}
    return StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        **{**defaults, **named},
    )


def _group(member: Member) -> Any:
    return SimpleNamespace(group_id="g", members={member.member_id: member})


MEMBER = Member("m", assignment=Assignment(5, 4, held=HELD))


def test_a_member_with_its_epoch_is_known() -> None:
    assert known_member(_group(MEMBER), _ask(5)) is MEMBER
    with pytest.raises(Refused, match="Member x is not a member of group g") as refused:
        known_member(_group(MEMBER), _ask(5, "x"))
    assert refused.value.error_code is ErrorCode.UNKNOWN_MEMBER_ID


ALL: dict[str, Any] = {"active_tasks": (("0", (0,)),), "standby_tasks": (("1", (2,)),), "warmup_tasks": ()}


@pytest.mark.parametrize(
    ("said", "is_fine"),
    [
        (ALL, True),
        ({**ALL, "active_tasks": (("0", (0, 1)),)}, True),
        ({**ALL, "active_tasks": (("0", (0, 2)),)}, False),
        ({**ALL, "active_tasks": (("9", (0,)),)}, False),
        ({**ALL, "warmup_tasks": (("0", (0,)),)}, False),
        ({**ALL, "warmup_tasks": None}, False),
    ],
)
def test_the_epoch_before_is_fine_for_who_owns_no_more_than_it_has(
    said: dict[str, Any], is_fine: bool
) -> None:
    if is_fine:
        assert known_member(_group(MEMBER), _ask(4, **said)) is MEMBER
        return
    with pytest.raises(Refused, match=r"has a smaller member epoch \(4\)"):
        known_member(_group(MEMBER), _ask(4, **said))


@pytest.mark.parametrize(("epoch", "relation"), [(3, "smaller"), (6, "greater")])
def test_any_other_epoch_is_fenced(epoch: int, relation: str) -> None:
    with pytest.raises(Refused, match=f"has a {relation} member epoch") as refused:
        known_member(_group(MEMBER), _ask(epoch, **ALL))
    assert refused.value.error_code is ErrorCode.FENCED_MEMBER_EPOCH


def _topology(is_ready: bool = True) -> Any:
    subtopology = SimpleNamespace(
        task_count=3, source_topics=("in", "gone"), repartition_source_topics=("again", "in")
    )
    return SimpleNamespace(is_ready=is_ready, subtopologies={"0": subtopology} if is_ready else None)


@pytest.mark.parametrize("kind", ["active_tasks", "standby_tasks", "warmup_tasks"])
def test_tasks_that_do_not_exist_are_refused(kind: str) -> None:
    def claiming(one: str, numbers: tuple[int, ...]) -> StreamsGroupHeartbeatRequest:
        said: dict[str, Any] = {kind: ((one, numbers),)}
        return _ask(**said)

    check_owned(claiming("0", (0, 2)), _topology())
    check_owned(_ask(), _topology())
    for one, numbers, words in (
        ("1", (0,), "Subtopology 1 does not exist"),
        ("0", (3,), "Task 3 for subtopology 0 is invalid. Number of tasks for this subtopology: 3"),
        ("0", (0, -1), "Task -1 for subtopology 0 is invalid"),
    ):
        with pytest.raises(Refused, match=words) as refused:
            check_owned(claiming(one, numbers), _topology())
        assert refused.value.error_code is ErrorCode.INVALID_REQUEST
        # Without its topics nobody knows which tasks there are.
        check_owned(claiming(one, numbers), _topology(is_ready=False))


def test_what_a_member_leaves_out_has_not_changed() -> None:
    topology = Topology(epoch=7, subtopologies=())
    told = updated(
        MEMBER,
        _ask(
            rack_id="r",
            rebalance_timeout_ms=900,
            topology=topology,
            process_id="p",
            user_endpoint=Endpoint(host="h", port=1),
            client_tags=(KeyValue(key="zone", value="a"),),
        ),
        CLIENT,
    )
    assert (told.rack_id, told.rebalance_timeout_ms, told.topology_epoch, told.process_id) == (
        "r",
        900,
        7,
        "p",
    )
    assert (told.client_id, told.client_host, told.client_tags) == ("app", "/10.0.0.1", {"zone": "a"})
    assert told.user_endpoint is not None
    assert (told.user_endpoint.host, told.user_endpoint.port) == ("h", 1)
    assert told.assignment is MEMBER.assignment
    assert updated(told, _ask(), CLIENT) == told


def test_owned_tasks_are_known_only_if_all_kinds_are_named() -> None:
    assert owned(_ask(**{**ALL, "standby_tasks": None})) is None
    found = owned(_ask(**ALL))
    assert found is not None
    assert found.active == {"0": frozenset({0})}


def test_each_endpoint_is_told_with_its_partitions_of_topics_that_are_there() -> None:
    counts = {"in": 5, "again": 1}
    topics: Any = SimpleNamespace(
        find_by_name=lambda name: SimpleNamespace(partition_count=counts[name]) if name in counts else None
    )
    endpoint = KnownEndpoint(host="h", port=1)
    serving = Member("m", user_endpoint=endpoint, assignment=MEMBER.assignment)

    (told,) = partitions_by_endpoint([MEMBER, serving], _topology().subtopologies, topics)

    assert (told.user_endpoint.host, told.user_endpoint.port) == ("h", 1)
    active = {each.topic: each.partitions for each in told.active_partitions}
    assert active == {"again": (0,), "in": (0, 1)}
    assert [each.topic for each in told.active_partitions] == ["again", "in"]
    # The standby task is of a subtopology that is gone.
    assert told.standby_partitions == ()
    assert partitions_by_endpoint([serving], None, topics) == ()
