"""A group coordinator with consumer groups, in a world of its own: topics change, groups have own times."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.group_world import NEWEST, FixedTopics, GroupWorld

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.environment import Client, TopicFacts
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings, StreamsIntervals
from ottla.model.uuid import Uuid
from ottla.wire.declare import fields_of
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "g"
V1 = Client("client", "/127.0.0.1", 1)


class ChangingTopics(FixedTopics):
    """Topics that come, grow and go. Each has another id whenever it comes."""

    def __init__(self, **partition_counts: int) -> None:
        super().__init__()
        self.rack_names: dict[Uuid, list[list[str]]] = {}
        self._version = 1
        self._ids = 0
        for name, count in partition_counts.items():
            self.create(name, count)

    def create(self, name: str, partition_count: int) -> None:
        self._ids += 1
        topic_id = Uuid(f"{name[:9]:-<9}{self._ids:07}".encode())
        self.facts[name] = TopicFacts(name, topic_id, partition_count)
        self._version += 1

    def grow(self, name: str, partition_count: int) -> None:
        self.facts[name] = self.facts[name]._replace(partition_count=partition_count)
        self._version += 1

    def delete(self, name: str) -> None:
        del self.facts[name]
        self._version += 1

    def racks(self, wanted: Uuid) -> Sequence[Sequence[str]]:
        return self.rack_names.get(wanted) or super().racks(wanted)

    def version(self) -> int:
        return self._version


class ConsumerWorld(GroupWorld):
    """The coordinator, its topics, and a shorthand for heartbeats."""

    topics: ChangingTopics

    def __init__(
        self,
        settings: GroupSettings | None = None,
        topics: ChangingTopics | None = None,
        suffix: Callable[[], str] | None = None,
        **partition_counts: int,
    ) -> None:
        self.intervals = ConsumerIntervals()
        self.own_intervals: dict[str, ConsumerIntervals] = {}
        self.own_streams_intervals = StreamsIntervals()
        topics = topics or ChangingTopics(**(partition_counts or {"orders": 3, "other": 2}))
        super().__init__(settings, topics, suffix=suffix)

    def consumer_intervals(self, group_id: str) -> ConsumerIntervals:
        return self.own_intervals.get(group_id, self.intervals)

    def streams_intervals(self, group_id: str) -> StreamsIntervals:
        return self.own_streams_intervals

    def topics_changed(self, *names: str, has_new: bool = False) -> None:
        """Tell the coordinator, as the metadata does."""
        self.coordinator.topics_changed(names, has_new)
        self.settle()

    def id_of(self, topic: str) -> Uuid:
        return self.topics.facts[topic].topic_id

    def heartbeat(self, member_id: str, epoch: int, client: Client = V1, **fields: Any) -> Any:
        """Send a heartbeat. `owned` is a dict of partitions by topic name."""
        owned = fields.pop("owned", None)
        if owned is not None:
            fields["topic_partitions"] = self.partitions(owned)
        fields.setdefault("group_id", GROUP)
        ask = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **fields)
        return self.ask("consumer_group_heartbeat", ask, client)

    def join(self, member_id: str, *names: str, **fields: Any) -> Any:
        """Let a member join with what a join needs."""
        fields.setdefault("rebalance_timeout_ms", 60_000)
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", names or ("orders",))
        return self.heartbeat(member_id, 0, owned={}, **fields)

    def partitions(self, owned: dict[str, Sequence[int]]) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(topic_id=self.id_of(name), partitions=tuple(numbers))
            for name, numbers in owned.items()
        )

    def assigned(self, response: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """Return what an answer assigns, by topic names; None when it says nothing."""
        if response.assignment is None:
            return None
        shown = {}
        for topic in response.assignment.topic_partitions:
            facts = self.topics.find_by_id(topic.topic_id)
            shown["gone" if facts is None else facts.name] = list(topic.partitions)
        return shown

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.shard.state.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group


def essence(value: Any) -> Any:
    """Return a message as plain values, with lists in an order of their own: Kafka's come from hash maps."""
    if hasattr(type(value), "__wire_fields__"):
        fields = {name: getattr(value, name) for name in fields_of(type(value)) if name != "error_message"}
        epochs = fields.pop("assignment_epochs", None)
        if epochs:
            fields["partitions"] = tuple(zip(fields["partitions"], epochs, strict=True))
        return {name: essence(field) for name, field in fields.items()}
    if isinstance(value, tuple):
        return sorted((essence(element) for element in value), key=repr)
    return value


__all__ = ["GROUP", "NEWEST", "V1", "ChangingTopics", "ConsumerWorld", "essence"]
