"""A group coordinator with share groups, in a world of its own."""

from typing import Any

from tests.support.consumer_world import ChangingTopics
from tests.support.group_world import GroupWorld

from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import GroupSettings, ShareIntervals
from ottla.coordination.group.share.group import ShareGroup
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

GROUP = "queue"
CLIENT = Client("client", "/127.0.0.1", 1)


class ShareWorld(GroupWorld):
    """The coordinator, its topics, and a shorthand for heartbeats."""

    topics: ChangingTopics

    def __init__(self, settings: GroupSettings | None = None, **partition_counts: int) -> None:
        self.intervals = ShareIntervals(assignment_interval_ms=0)
        super().__init__(settings, ChangingTopics(**(partition_counts or {"orders": 3, "other": 2})))

    def share_intervals(self, group_id: str) -> ShareIntervals:
        return self.intervals

    def heartbeat(
        self, member_id: str, epoch: int, *names: str, **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        """Send a heartbeat of a member that subscribes to topics, or says nothing of them."""
        ask = ShareGroupHeartbeatRequest(
            group_id=fields.pop("group_id", GROUP),
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=names or None,
            **fields,
        )
        answer: ShareGroupHeartbeatResponse = self.ask("share_group_heartbeat", ask, CLIENT)
        return answer

    def join(self, member_id: str, *names: str) -> ShareGroupHeartbeatResponse:
        """Join, and stay until the partitions have got their state."""
        answer = self.heartbeat(member_id, 0, *(names or ("orders",)))
        return self.heartbeat(member_id, answer.member_epoch, *(names or ("orders",)))

    def assigned(self, answer: ShareGroupHeartbeatResponse) -> dict[str, list[int]]:
        """Return what an answer assigns, by the names of topics."""
        assert answer.assignment is not None
        names = {facts.topic_id: name for name, facts in self.topics.facts.items()}
        return {names[one.topic_id]: list(one.partitions) for one in answer.assignment.topic_partitions}

    def group(self) -> ShareGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group
