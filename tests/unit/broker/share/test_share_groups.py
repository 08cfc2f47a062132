"""A share group on a node: members get partitions when the share coordinator has a state for them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.share_member import (
    GROUP,
    SETTINGS,
    Member,
    acquired,
    create_topic,
    describe,
    heartbeat,
    join,
    run,
    said,
    send,
    start_earliest,
)

from ottla.broker.lifecycle.startup import Node
from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.share.persister import Errors
from ottla.coordination.runtime.shard import AnyShard, ShardStatus
from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path, SETTINGS) as node:
        yield node


def test_a_member_gets_partitions_when_they_have_a_state(node: Node) -> None:
    client = InProcessClient(node)
    topic_id = create_topic(client)
    answer = join(node, client)
    assert answer.assignment is not None
    assert [(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions] == [
        (topic_id, (0, 1))
    ]
    described = client.ask(
        ShareGroupDescribeRequest(group_ids=(GROUP, "none"), include_authorized_operations=False)
    )
    group, none = described.groups
    assert (group.group_state, group.assignor_name, len(group.members)) == ("Stable", "simple", 1)
    assert none.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    topic = ReadStateData(topic_id=topic_id, partitions=(PartitionData(partition=0, leader_epoch=0),))
    state = client.ask(ReadShareGroupStateRequest(group_id=GROUP, topics=(topic,)))
    assert state.results[0].partitions[0].error_code is ErrorCode.NONE
    assert state.results[0].partitions[0].start_offset == -1
    found = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(f"{GROUP}:{topic_id}:0",)))
    assert found.coordinators[0].error_code is ErrorCode.NONE


@pytest.fixture
def member(node: Node) -> Member:
    client = InProcessClient(node)
    topic_id = create_topic(client)
    start_earliest(client)
    join(node, client)
    send(client, *(b"%d" % number for number in range(10)))
    return Member(node, topic_id)


def test_records_are_acquired_accepted_and_not_delivered_again(node: Node, member: Member) -> None:
    first = member.fetch(max_wait_ms=5000)
    assert acquired(first) == [(0, 9, 1)]
    assert first.acquisition_lock_timeout_ms == 30_000
    assert member.acknowledge(said(0, 9, 1)) is ErrorCode.NONE
    assert acquired(member.fetch()) == []
    send(member.client, b"more")
    assert acquired(member.fetch()) == [(10, 10, 1)]


def test_acknowledgements_come_along_with_a_fetch(node: Node, member: Member) -> None:
    member.fetch(max_records=3, share_acquire_mode=1, max_wait_ms=5000)
    answer = member.fetch(said(0, 2, 1, 2, 3), max_records=3, share_acquire_mode=1)
    assert answer.responses[0].partitions[0].acknowledge_error_code is ErrorCode.NONE
    assert acquired(answer) == [(1, 1, 2), (3, 4, 1)]


def test_who_leaves_gives_back_what_it_has(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    other = Member(node, member.topic_id, "n")
    assert acquired(other.fetch()) == []
    assert member.acknowledge(said(0, 4, 1), epoch=-1) is ErrorCode.NONE
    assert acquired(other.fetch(max_wait_ms=5000)) == [(5, 9, 2)]


def test_a_closed_connection_gives_back_what_its_member_has(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    other = Member(node, member.topic_id, "n")
    assert acquired(other.fetch()) == []
    member.client.session.close()
    assert acquired(other.fetch(max_wait_ms=5000)) == [(0, 9, 2)]


def test_sessions_have_epochs(node: Node, member: Member) -> None:
    assert member.fetch(epoch=1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=-1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(said(0, 0, 1), epoch=1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(said(0, 0, 1), epoch=0) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(said(0, 0, 1), epoch=0).error_code is ErrorCode.INVALID_REQUEST
    member.fetch(max_wait_ms=5000)
    assert member.fetch(epoch=2).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge(said(0, 0, 1), epoch=3) is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_who_needs_no_bytes_does_not_wait_for_any(node: Node, member: Member) -> None:
    """And the first answer of a session names what was read, also without records, as in Apache Kafka."""
    member.fetch(max_wait_ms=5000, max_records=10)
    other = Member(node, member.topic_id, "other")
    first = other.fetch(min_bytes=0, max_wait_ms=3_600_000)
    (partition,) = first.responses[0].partitions
    assert partition.error_code is ErrorCode.NONE
    assert (bytes(partition.records or b""), partition.acquired_records) == (b"", ())
    again = other.fetch(min_bytes=0, max_wait_ms=3_600_000)
    assert (again.error_code, again.responses) == (ErrorCode.NONE, ())


def test_what_cannot_be_said_is_refused(node: Node, member: Member) -> None:
    member.fetch(max_wait_ms=5000)
    assert member.acknowledge(said(5, 4, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 1, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 5)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 4)) is ErrorCode.INVALID_REQUEST, "only a renewal may renew"
    assert member.acknowledge(said(0, 40, 1)) is ErrorCode.INVALID_REQUEST
    assert member.acknowledge(said(0, 4, 1)) is ErrorCode.NONE
    assert member.acknowledge(said(0, 4, 1)) is ErrorCode.NONE, "that is done already"
    assert member.acknowledge(said(6, 7, 1), said(7, 8, 1)) is ErrorCode.INVALID_RECORD_STATE


def test_what_was_acknowledged_survives_a_restart(tmp_path: Path) -> None:
    with in_process_node(tmp_path, SETTINGS) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client)
        start_earliest(client)
        join(node, client)
        send(client, *(b"%d" % number for number in range(10)))
        member = Member(node, topic_id)
        member.fetch(max_wait_ms=5000)
        assert member.acknowledge(said(0, 1, 1), said(2, 2, 2), said(3, 3, 3)) is ErrorCode.NONE
    with in_process_node(tmp_path, SETTINGS) as node:
        member = Member(node, topic_id)
        assert acquired(member.fetch(max_wait_ms=5000)) == [(2, 2, 2), (4, 9, 1)]


def test_no_start_is_written_when_others_have_gone_on_from_it(
    node: Node, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would bring back what they have acknowledged."""
    held: list[Callable[[], None]] = []
    write = node.broker.share_persister.write
    with monkeypatch.context() as patch:
        patch.setattr(node.broker.share_persister, "write", lambda *what: held.append(lambda: write(*what)))
        member.fetch()
        while not held:
            run(node)
        (start,) = held
        member.fetch(epoch=-1)
    again = Member(node, member.topic_id)
    assert acquired(again.fetch()) == [], "where the group starts is still being written"
    start()
    assert acquired(again.fetch(max_wait_ms=5000)) == [(0, 9, 1)]
    again.acknowledge(said(0, 9, 1))
    assert describe(again.client)[0] == (10, 0)


def alter(client: InProcessClient, start_offset: int, partition: int = 0) -> ErrorCode:
    one = AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=start_offset)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=(one,))
    answer = client.ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,)))
    code: ErrorCode = answer.error_code or answer.responses[0].partitions[0].error_code
    return code


def forget(client: InProcessClient) -> ErrorCode:
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name="orders")
    answer = client.ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=(topic,)))
    code: ErrorCode = answer.error_code or answer.responses[0].error_code
    return code


def test_the_lag_counts_what_is_not_done(node: Node, member: Member) -> None:
    client = member.client
    assert describe(client) == {0: (-1, -1), 1: (-1, -1)}, "nobody has read yet"
    member.fetch(max_wait_ms=5000)
    assert describe(client)[0] == (0, 10)
    member.acknowledge(said(0, 1, 1), said(5, 7, 1))
    assert describe(client)[0] == (2, 5)


def test_offsets_of_an_empty_group_can_be_set_and_forgotten(node: Node, member: Member) -> None:
    client = InProcessClient(node)
    member.fetch(max_wait_ms=5000)
    assert alter(client, 3) is forget(client) is ErrorCode.NON_EMPTY_GROUP
    member.acknowledge(said(0, 9, 1), epoch=-1)
    heartbeat(client, -1)
    assert alter(client, 3) is ErrorCode.NONE
    assert alter(client, 3, partition=9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(client)[0] == (3, 7)
    join(node, client)
    again = Member(node, member.topic_id)
    assert acquired(again.fetch(max_wait_ms=5000)) == [(3, 9, 1)]
    again.acknowledge(said(3, 9, 1), epoch=-1)
    heartbeat(client, -1)
    assert forget(client) is ErrorCode.NONE
    assert forget(client) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(client) == {}
    join(node, client)
    assert acquired(Member(node, member.topic_id).fetch(max_wait_ms=5000)) == [(0, 9, 1)]


def test_a_group_goes_with_its_states(node: Node, member: Member) -> None:
    client = InProcessClient(node)
    assert client.ask(DeleteGroupsRequest(group_names=(GROUP,))).results[0].error_code is (
        ErrorCode.NON_EMPTY_GROUP
    )
    heartbeat(client, -1)
    assert client.ask(DeleteGroupsRequest(group_names=(GROUP,))).results[0].error_code is ErrorCode.NONE
    assert all(not shard.state.states for shard in node.broker.shares.coordinator.shards)


def delete_group(client: InProcessClient) -> ErrorCode:
    code: ErrorCode = client.ask(DeleteGroupsRequest(group_names=(GROUP,))).results[0].error_code
    return code


def test_a_group_whose_states_could_not_be_deleted_is_deleted_with_them_later(
    node: Node, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = InProcessClient(node)
    heartbeat(client, -1)
    # These states are newer than those of a group of the same name could be.
    assert alter(client, 3) is ErrorCode.NONE
    with monkeypatch.context() as patch:
        patch.setattr(node.broker.share_persister, "delete", refuse_to_delete)
        assert delete_group(client) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert delete_group(client) is ErrorCode.NONE
    assert all(not shard.state.states for shard in node.broker.shares.coordinator.shards)
    join(node, client)
    assert acquired(Member(node, member.topic_id).fetch(max_wait_ms=5000)) == [(0, 9, 1)]


def refuse_to_delete(_group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
    """The share coordinator moves, for longer than anybody waits."""
    done(
        {
            (topic, number): ErrorCode.COORDINATOR_NOT_AVAILABLE
            for topic, numbers in partitions.items()
            for number in numbers
        }
    )


def delete_topic_unnoticed(node: Node, client: InProcessClient) -> AnyShard:
    """Delete the topic while the group is being loaded."""
    (shard,) = node.broker.groups.coordinator.shards
    shard.status = ShardStatus.LOADING
    topic = DeleteTopicState(name="orders", topic_id=ZERO_UUID)
    answer = client.ask(DeleteTopicsRequest(topics=(topic,), timeout_ms=1000))
    assert answer.responses[0].error_code is ErrorCode.NONE
    while node.broker.image.topics.find("orders") is not None:
        run(node)
    return shard


def test_a_group_can_be_deleted_whose_topics_have_gone_while_it_was_loaded(
    node: Node, member: Member
) -> None:
    client = InProcessClient(node)
    shard = delete_topic_unnoticed(node, client)
    shard.status = ShardStatus.ACTIVE
    heartbeat(client, -1)
    assert delete_group(client) is ErrorCode.NONE


def test_a_group_that_is_loaded_forgets_the_states_of_topics_that_are_gone(
    node: Node, member: Member
) -> None:
    client = InProcessClient(node)
    shard = delete_topic_unnoticed(node, client)
    shard.activate(0)
    topic_id = create_topic(client)
    epoch = join(node, client).member_epoch
    assert set(shard.state.shares.find(GROUP).state_topics.topic_ids()) == {topic_id}
    # Otherwise each heartbeat would begin a new epoch, for what nobody can be given.
    assert heartbeat(client, epoch, "orders").member_epoch == epoch
    assert heartbeat(client, epoch, "orders").member_epoch == epoch
