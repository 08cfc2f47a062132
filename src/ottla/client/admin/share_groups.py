"""Share groups: describe them, and read, set and delete the offsets from which they deliver records.

`Groups.list` and `Groups.delete` know share groups as all others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.descriptions import GroupDescription, MemberDescription
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.reset_plans import ResetPlans
from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, by_topic, outcome_of
from ottla.client.cluster import GROUP
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """From where on a share group has records to deliver, and how many are left (None: not known)."""

    start_offset: int
    leader_epoch: int = -1
    lag: int | None = None


class ShareGroups:
    """The share groups of a cluster."""

    def __init__(self, routes: Routes, plans: ResetPlans) -> None:
        self._routes = routes
        self._plans = plans

    async def describe(self, group_id: str) -> GroupDescription:
        """Describe one share group."""
        return (await self.describe_many([group_id]))[group_id]

    async def describe_many(self, group_ids: Collection[str]) -> Results[str, GroupDescription]:
        """Describe share groups."""

        async def ask(node_id: int, keys: Sequence[str]) -> dict[str, GroupDescription | ClientError]:
            request = ShareGroupDescribeRequest(group_ids=tuple(keys), include_authorized_operations=False)
            answer = await self._routes.ask_node(node_id, request)
            return {group.group_id: _described(group, node_id) for group in answer.groups}

        return await self._routes.ask_coordinators(GROUP, group_ids, ask)

    async def offsets(self, group_id: str) -> dict[TopicPartition, ShareOffset]:
        """Return from where on a share group has still to deliver records (Kafka 4.1).

        Partitions in which it has not begun are left out.
        """

        def outcome(answer: Any) -> dict[TopicPartition, ShareOffset] | ClientError:
            group = answer.groups[0]
            found = {
                TopicPartition(topic.topic_name, item.partition_index): ShareOffset(
                    item.start_offset, item.leader_epoch, item.lag if item.lag >= 0 else None
                )
                for topic in group.topics
                for item in topic.partitions
                if item.error_code is ErrorCode.NONE and item.start_offset >= 0
            }
            what = f"cannot read the offsets of share group {group_id!r}"
            return outcome_of(group.error_code, what, group.error_message, found)

        request = DescribeShareGroupOffsetsRequest(
            groups=(DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None),)
        )
        return await self._routes.ask_coordinator(GROUP, group_id, request, outcome)

    async def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> Results[TopicPartition, None]:
        """Set where a share group goes on, and forget what it knew of later records. It must be empty."""

        def outcome(answer: Any) -> dict[TopicPartition, ClientError | None] | ClientError:
            items: dict[TopicPartition, ClientError | None] = {}
            for topic in answer.responses:
                for item in topic.partitions:
                    where = TopicPartition(topic.topic_name, item.partition_index)
                    what = f"cannot set the offset of {where}"
                    items[where] = outcome_of(item.error_code, what, item.error_message, None)
            return outcome_of(answer.error_code, f"share group {group_id!r}", answer.error_message, items)

        request = AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=tuple(
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=topic,
                    partitions=tuple(
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=number, start_offset=offsets[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic(offsets).items()
            ),
        )
        return Results(await self._routes.ask_coordinator(GROUP, group_id, request, outcome))

    async def delete_offsets(self, group_id: str, topics: Collection[str]) -> Results[str, None]:
        """Make a share group forget topics. It must be empty."""

        def outcome(answer: Any) -> dict[str, ClientError | None] | ClientError:
            items: dict[str, ClientError | None] = {
                item.topic_name: outcome_of(
                    item.error_code, f"cannot forget {item.topic_name!r}", item.error_message, None
                )
                for item in answer.responses
            }
            return outcome_of(answer.error_code, f"share group {group_id!r}", answer.error_message, items)

        request = DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics),
        )
        return Results(await self._routes.ask_coordinator(GROUP, group_id, request, outcome))

    async def plan_reset(
        self,
        group_id: str,
        *,
        topics: Collection[str] | None = None,
        partitions: Collection[TopicPartition] | None = None,
        to: int | OffsetSpec | None = None,
        to_timestamp_ms: int | None = None,
        shift_by: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Say where a share group would go on; `alter_offsets` with the answer does it.

        The choices are those of `GroupOffsets.plan_reset`.
        """
        return await self._plans.plan(
            group_id,
            {where: item.start_offset for where, item in (await self.offsets(group_id)).items()},
            topics=topics,
            partitions=partitions,
            to=to,
            to_timestamp_ms=to_timestamp_ms,
            shift_by=shift_by,
        )


def _described(group: DescribedGroup, node_id: int) -> GroupDescription | ClientError:
    description = GroupDescription(
        group_id=group.group_id,
        type="share",
        state=group.group_state,
        protocol_type="share",
        assignor=group.assignor_name,
        coordinator=node_id,
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(
            MemberDescription(
                member_id=member.member_id,
                instance_id=None,
                client_id=member.client_id,
                host=member.client_host,
                rack_id=member.rack_id,
                epoch=member.member_epoch,
                subscribed_topics=member.subscribed_topic_names,
                subscribed_regex=None,
                assignment=tuple(
                    TopicPartition(topic.topic_name, partition)
                    for topic in member.assignment.topic_partitions
                    for partition in topic.partitions
                ),
                target_assignment=None,
            )
            for member in group.members
        ),
    )
    what = f"cannot describe share group {group.group_id!r}"
    return outcome_of(group.error_code, what, group.error_message, description)
