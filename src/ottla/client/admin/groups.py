"""Groups: list, describe, delete, and remove members. Classic, consumer (KIP-848) and streams groups.

Share groups are described by `share_groups.py`: they have no partitions of their own.
"""

from collections.abc import Collection, Sequence
from typing import Any

from ottla.client.admin.descriptions import GroupDescription, GroupListing, MemberDescription
from ottla.client.admin.results import Results
from ottla.client.admin.routes import ByVersion, Routes, outcome_of
from ottla.client.admin.streams_groups import describe_streams_group
from ottla.client.cluster import GROUP
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker, raise_for
from ottla.model.ids import TopicPartition
from ottla.wire.codec import decode_from
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import WireError
from ottla.wire.messages import consumer_group_describe as by_consumer_protocol
from ottla.wire.messages import describe_groups as by_classic_protocol
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

_CONSUMER = "consumer"


class Groups:
    """The groups of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> tuple[GroupListing, ...]:
        """List groups by name, of all brokers; with some states or of some types only, when given."""

        def make(version: int) -> ListGroupsRequest:
            if (states and version < 4) or (types and version < 5):
                raise UnsupportedByBroker("the broker is too old to choose groups by state or type")
            return ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))

        answers = (await self._routes.ask_all(ByVersion(ListGroupsRequest, make))).check()
        found = []
        for node_id, answer in answers.items():
            raise_for(answer.error_code, f"broker {node_id} cannot list its groups")
            found += [
                GroupListing(item.group_id, item.protocol_type, item.group_state, item.group_type, node_id)
                for item in answer.groups
            ]
        for group in found:
            # Only its coordinator lists a group. With thousands of them, looking for each would take long.
            self._routes.cluster.note_coordinator(GROUP, group.group_id, group.coordinator)
        return tuple(sorted(found, key=lambda group: group.group_id))

    async def describe(self, group_id: str) -> GroupDescription:
        """Describe one group."""
        return (await self.describe_many([group_id]))[group_id]

    async def describe_many(self, group_ids: Collection[str]) -> Results[str, GroupDescription]:
        """Describe groups of any kind but share groups."""
        return await self._routes.ask_coordinators(GROUP, group_ids, self._describe_at)

    async def delete(self, group_id: str) -> None:
        """Delete one group with its offsets. It must have no members."""
        (await self.delete_many([group_id])).check()

    async def delete_many(self, group_ids: Collection[str]) -> Results[str, None]:
        """Delete groups with their offsets."""

        async def ask(node_id: int, keys: Sequence[str]) -> dict[str, ClientError | None]:
            request = DeleteGroupsRequest(group_names=tuple(keys))
            answer = await self._routes.ask_node(node_id, request, repeatable=False)
            return {
                item.group_id: outcome_of(
                    item.error_code, f"cannot delete group {item.group_id!r}", None, None
                )
                for item in answer.results
            }

        return await self._routes.ask_coordinators(GROUP, group_ids, ask)

    async def remove_members(self, group_id: str, instance_ids: Collection[str]) -> Results[str, None]:
        """Make static members leave, by their `group.instance.id`."""

        def outcome(answer: Any) -> dict[str, ClientError | None] | ClientError:
            outcomes: dict[str, ClientError | None] = {
                item.group_instance_id or "": outcome_of(
                    item.error_code, f"{item.group_instance_id!r} cannot leave {group_id!r}", None, None
                )
                for item in answer.members
            }
            return outcome_of(answer.error_code, f"group {group_id!r}", None, outcomes)

        members = tuple(MemberIdentity(member_id="", group_instance_id=name) for name in instance_ids)
        request = LeaveGroupRequest(group_id=group_id, members=members)
        return Results(
            await self._routes.ask_coordinator(GROUP, group_id, request, outcome, repeatable=False)
        )

    async def _describe_at(
        self, node_id: int, group_ids: Sequence[str]
    ) -> dict[str, GroupDescription | ClientError]:
        """Describe by the new protocol first; other groups are described by the other request."""
        outcomes: dict[str, GroupDescription | ClientError] = {}
        try:
            request = by_consumer_protocol.ConsumerGroupDescribeRequest(
                group_ids=tuple(group_ids), include_authorized_operations=False
            )
            answer = await self._routes.ask_node(node_id, request)
        except UnsupportedByBroker:
            return await self._describe_classic_at(node_id, group_ids)
        for group in answer.groups:
            if group.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                outcomes[group.group_id] = _of_consumer_protocol(group, node_id)
        classic = [group_id for group_id in group_ids if group_id not in outcomes]
        if classic:
            outcomes.update(await self._describe_classic_at(node_id, classic))
        unknown = [group_id for group_id, outcome in outcomes.items() if _is_not_found(outcome)]
        if unknown:
            outcomes.update(await self._describe_streams_at(node_id, unknown))
        return outcomes

    async def _describe_streams_at(
        self, node_id: int, group_ids: Sequence[str]
    ) -> dict[str, GroupDescription | ClientError]:
        request = StreamsGroupDescribeRequest(group_ids=tuple(group_ids), include_authorized_operations=False)
        try:
            answer = await self._routes.ask_node(node_id, request)
        except UnsupportedByBroker:
            return {}
        # What is not of this kind either does not exist: that has been said.
        return {
            group.group_id: describe_streams_group(group, node_id)
            for group in answer.groups
            if group.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
        }

    async def _describe_classic_at(
        self, node_id: int, group_ids: Sequence[str]
    ) -> dict[str, GroupDescription | ClientError]:
        request = by_classic_protocol.DescribeGroupsRequest(groups=tuple(group_ids))
        answer = await self._routes.ask_node(node_id, request)
        return {group.group_id: _of_classic_protocol(group, node_id) for group in answer.groups}


def _is_not_found(outcome: GroupDescription | ClientError) -> bool:
    return isinstance(outcome, BrokerError) and outcome.error_code is ErrorCode.GROUP_ID_NOT_FOUND


def _of_consumer_protocol(
    group: by_consumer_protocol.DescribedGroup, node_id: int
) -> GroupDescription | ClientError:
    members = tuple(
        MemberDescription(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.client_host,
            rack_id=member.rack_id,
            epoch=member.member_epoch,
            subscribed_topics=member.subscribed_topic_names,
            subscribed_regex=member.subscribed_topic_regex or None,
            assignment=_partitions(member.assignment),
            target_assignment=_partitions(member.target_assignment),
        )
        for member in group.members
    )
    description = GroupDescription(
        group_id=group.group_id,
        type="consumer",
        state=group.group_state,
        protocol_type=_CONSUMER,
        assignor=group.assignor_name,
        coordinator=node_id,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=members,
    )
    what = f"cannot describe group {group.group_id!r}"
    return outcome_of(group.error_code, what, group.error_message, description)


def _partitions(assignment: by_consumer_protocol.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _of_classic_protocol(
    group: by_classic_protocol.DescribedGroup, node_id: int
) -> GroupDescription | ClientError:
    what = f"cannot describe group {group.group_id!r}"
    if group.error_code is ErrorCode.NONE and group.group_state == "Dead":
        # Before version 6 a group that does not exist is described as a dead one.
        return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, what)
    description = GroupDescription(
        group_id=group.group_id,
        type="classic",
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=node_id,
        epoch=None,
        assignment_epoch=None,
        members=tuple(_classic_member(member, group.protocol_type) for member in group.members),
    )
    return outcome_of(group.error_code, what, group.error_message, description)


def _classic_member(
    member: by_classic_protocol.DescribedGroupMember, protocol_type: str
) -> MemberDescription:
    subscribed: tuple[str, ...] = ()
    assigned: tuple[TopicPartition, ...] = ()
    # Groups of other kinds, Kafka Connect's say, put bytes of their own there.
    if protocol_type == _CONSUMER:
        subscription = _embedded(ConsumerProtocolSubscription, member.member_metadata)
        assignment = _embedded(ConsumerProtocolAssignment, member.member_assignment)
        subscribed = subscription.topics if subscription is not None else ()
        if assignment is not None:
            assigned = tuple(
                TopicPartition(topic.topic, partition)
                for topic in assignment.assigned_partitions
                for partition in topic.partitions
            )
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        rack_id=None,
        epoch=None,
        subscribed_topics=subscribed,
        subscribed_regex=None,
        assignment=assigned,
        target_assignment=None,
    )


def _embedded(kind: type[Any], data: bytes) -> Any:
    """Read what members told each other, or None where it cannot be read: a group may be rebalancing."""
    if len(data) < 2:
        return None
    version = min(int.from_bytes(data[:2], signed=True), 3)
    try:
        return decode_from(kind, data, version, 2)[0]
    except WireError:
        return None
