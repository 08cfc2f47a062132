"""What the coordinator has written about a group becomes its commits and its members, in their order."""

from typing import Any

from tests.support.made_up_evidence import T0, T1, event, group, history, journal, record

from ottla.explain.causes.lost import _last_commit
from ottla.explain.causes.standing import last_positions
from ottla.explain.evidence.group_history import GroupHistory, _Fold
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.codec import encode
from ottla.wire.consumer_protocol import AssignedTopicPartitions, ConsumerProtocolAssignment
from ottla.wire.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.wire.coordinator_records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue

TOPIC_ID, UNKNOWN_ID = Uuid((1).to_bytes(16)), Uuid((2).to_bytes(16))
BATCH = record(T0, 0, None, 0).batch._replace(is_transactional=True, producer_id=7, producer_epoch=2)


def folded(*records: tuple[Any, Any], group_id: str = "g") -> GroupHistory:
    """Put records together that were written at the times 1, 2, 3..."""
    fold = _Fold(group_id, {TOPIC_ID: "t"})
    for number, (key, value) in enumerate(records, 1):
        fold.take(CoordinatorRecord(key, value, 0), number, 100 + number, BATCH)
    return fold.history()


# Commits


def commit_key(group_id: str = "g") -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic="t", partition=1)


def test_a_commit_has_the_time_that_it_names_and_the_transaction_that_it_is_part_of() -> None:
    value = OffsetCommitValue(offset=5, metadata="note", commit_timestamp=99)
    found = folded((commit_key(), value), (commit_key("other"), value), (commit_key(), None))
    stored, deleted = found.commits
    assert stored == (99, T1, 5, "note", True, 101, (7, 2))
    assert deleted == (3, T1, None, "", True, 103, (7, 2))
    assert found.generations == ()


def test_the_last_commit_of_a_partition_at_a_time_is_found() -> None:
    past = history((10, 5), (20, 6), (30, None), (40, 8))
    known = [past.committed_at(T0, at_ms) for at_ms in (9, 10, 25, 35)]
    assert [None if one is None else (one.at_ms, one.offset) for one in known] == [
        None,
        (10, 5),
        (20, 6),
        (30, None),
    ]
    assert past.committed_at(T1, 99) is None

    def last(at_ms: int) -> tuple[int | None, bool]:
        found, is_deleted = _last_commit(group(history=past), T0, at_ms)
        return None if found is None else found.offset, is_deleted

    assert [last(at_ms) for at_ms in (9, 10, 20, 30, 40)] == [
        (None, False),
        (5, False),
        (6, False),
        (6, True),
        (8, False),
    ]
    assert _last_commit(group(history=past), T1, 99) == (None, False)


# Classic groups


def classic(*members: MemberMetadata, generation: int = 4) -> tuple[Any, Any]:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader=None,
        current_state_timestamp=0,
        members=members,
    )
    return GroupMetadataKey(group="g"), value


def member(assignment: bytes, name: str = "m") -> MemberMetadata:
    return MemberMetadata(
        member_id=name,
        group_instance_id=None,
        client_id=f"client-{name}",
        client_host="/h",
        rebalance_timeout=300,
        session_timeout=200,
        subscription=b"",
        assignment=assignment,
    )


def assignment(version: int, *numbers: int) -> bytes:
    topics = (AssignedTopicPartitions(topic="t", partitions=numbers),)
    return version.to_bytes(2, "big") + bytes(
        encode(ConsumerProtocolAssignment(assigned_partitions=topics), min(version, 3))
    )


def test_a_generation_of_a_classic_group_has_all_members_with_their_partitions() -> None:
    found = folded(
        classic(member(assignment(1, 0, 1)), member(b"", "n")), (GroupMetadataKey(group="g"), None)
    )
    first, ended = found.generations
    assert (first.at_ms, first.number, list(first.members)) == (1, 4, ["m", "n"])
    facts = first.members["m"]
    assert facts == ("m", "client-m", "/h", 200, 300, frozenset({T0, T1}))
    assert first.holder(T1) == facts
    assert first.holder(TopicPartition("t", 2)) is None
    assert first.members["n"].assignment == frozenset()
    assert (ended.at_ms, ended.number, ended.members) == (2, -1, {})


def test_assignments_of_later_versions_are_read_and_those_of_other_kinds_are_not() -> None:
    (found,) = folded(classic(member(assignment(9, 1)))).generations
    assert found.members["m"].assignment == {T1}
    for strange in (b"\0", b"\0\1", b"\0\1\xff\xff\xff\xfe"):
        (found,) = folded(classic(member(strange))).generations
        assert found.members["m"].assignment == frozenset()


# Groups whose broker assigns


def joins(name: str, client: str = "c") -> tuple[Any, Any]:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id=client,
        client_host="/h",
        subscribed_topic_names=("t",),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=300,
        server_assignor=None,
        classic_member_metadata=None,
    )
    return ConsumerGroupMemberMetadataKey(group_id="g", member_id=name), value


def gets(name: str, *numbers: int, epoch: int = 6, topic_id: Uuid = TOPIC_ID) -> tuple[Any, Any]:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=(CurrentTopicPartitions(topic_id=topic_id, partitions=numbers),),
        partitions_pending_revocation=(),
    )
    return ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=name), value


def leaves(name: str) -> tuple[Any, Any]:
    return ConsumerGroupMemberMetadataKey(group_id="g", member_id=name), None


def test_members_join_get_partitions_and_leave_one_by_one() -> None:
    found = folded(
        joins("m"), gets("m", 0, 1), joins("n"), gets("m", 0, epoch=7), gets("n", 1, epoch=7), leaves("m")
    )
    assert [
        (each.at_ms, each.number, {name: sorted(facts.assignment) for name, facts in each.members.items()})
        for each in found.generations
    ] == [
        (1, 0, {"m": []}),
        (2, 6, {"m": [T0, T1]}),
        (3, 2, {"m": [T0, T1], "n": []}),
        (4, 7, {"m": [T0], "n": []}),
        (5, 7, {"m": [T0], "n": [T1]}),
        (6, 5, {"n": [T1]}),
    ]
    facts = found.generations[0].members["m"]
    assert (facts.client_id, facts.host, facts.session_timeout_ms, facts.rebalance_timeout_ms) == (
        "c",
        "/h",
        None,
        300,
    )


def test_what_changes_nothing_is_no_generation_and_a_new_name_keeps_the_partitions() -> None:
    found = folded(
        joins("m"), gets("m", 0), gets("m", 0, epoch=9), gets("stranger", 1), joins("m", "renamed")
    )
    assert [each.at_ms for each in found.generations] == [1, 2, 5]
    assert found.generations[-1].members["m"][1:] == ("renamed", "/h", None, 300, frozenset({T0}))
    unknown = folded(joins("m"), gets("m", 0, topic_id=UNKNOWN_ID))
    assert [sorted(each.members["m"].assignment) for each in unknown.generations] == [[]]
    assert folded(joins("m"), gets("m", 0), group_id="other") == GroupHistory()


# Positions


def test_the_last_positions_are_those_of_members() -> None:
    events = [
        event(1, "fetch-position", client="reader", host="h", at={"t/0": 5, "t/1": 7}),
        event(2, "fetch-stopped", client="reader", host="h", at={"t/0": 6}),
        event(3, "fetch-position", client="stranger", host="h", at={"t/0": 99}),
    ]
    found = last_positions(group(history=history(hands=((1, "reader"),)), view=journal(*events)))
    assert {where: (offset, seen.at_ms) for where, (offset, seen) in found.items()} == {
        T0: (6, 2),
        T1: (7, 1),
    }
