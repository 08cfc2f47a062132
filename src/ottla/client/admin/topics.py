"""Topics: list, describe, create, delete, add partitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.results import Results
from ottla.client.admin.routes import ByVersion, Routes, outcome_of
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@dataclass(frozen=True, slots=True)
class TopicListing:
    """One line of the list of topics."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition. The last two are None where the broker does not tell them (before 4.0)."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None
    last_known_eligible_leader_replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic with its partitions, in order."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """Return how many replicas the first partition has; a reassignment may make others differ."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def topic_partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions by name and number."""
        return tuple(TopicPartition(self.name, item.partition) for item in self.partitions)


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Some of all topics, and where the next page begins (None: this was the last one)."""

    topics: tuple[TopicDescription, ...]
    cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Without partitions or replicas the broker's defaults hold.

    `assignment` says which brokers hold each partition instead; then the two numbers must not be given.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] | None = None
    assignment: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created. Old brokers tell neither id nor sizes: the zero id, and -1."""

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


class Topics:
    """The topics of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(self, *, internal: bool = False) -> tuple[TopicListing, ...]:
        """List topics by name; those that Kafka keeps for itself only when asked for."""
        answer = await self._metadata(None)
        found = (
            TopicListing(topic.name, topic.topic_id, topic.is_internal, len(topic.partitions))
            for topic in answer.topics
            if topic.name is not None and (internal or not topic.is_internal)
        )
        return tuple(sorted(found, key=lambda topic: topic.name))

    async def describe_page(self, cursor: Cursor | None = None) -> TopicPage:
        """Describe topics by name, internal ones too, page by page (Kafka 3.8: before, all in one page).

        A topic with many partitions may go on in the next page. A page is small enough that neither side is
        held up by it, however many topics there are.
        """
        try:
            answer = await self._routes.ask_any(DescribeTopicPartitionsRequest(topics=(), cursor=cursor))
        except UnsupportedByBroker:
            return TopicPage(_those_described((await self._metadata(None)).topics), None)
        return TopicPage(_those_described(answer.topics), answer.next_cursor)

    async def describe(self, name: str) -> TopicDescription:
        """Describe one topic."""
        return (await self.describe_many([name]))[name]

    async def describe_many(self, names: Collection[str]) -> Results[str, TopicDescription]:
        """Describe topics."""
        if not names:
            return Results({})
        try:
            return await self._describe_in_pages(sorted(set(names)))
        except UnsupportedByBroker:
            answer = await self._metadata(sorted(set(names)))
            return Results({topic.name or "": _described(topic) for topic in answer.topics})

    async def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create one topic."""
        topic = NewTopic(name, partitions, replication_factor, configs, assignment)
        return (await self.create_many([topic], validate_only=validate_only))[name]

    async def create_many(
        self, topics: Collection[NewTopic], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics, or only check that they could be created."""

        def make(version: int) -> CreateTopicsRequest:
            return CreateTopicsRequest(
                topics=tuple(_creatable(topic, version) for topic in topics),
                timeout_ms=self._routes.request_timeout_ms,
                validate_only=validate_only,
            )

        answer = await self._routes.ask_controller(
            ByVersion(CreateTopicsRequest, make),
            lambda found: (topic.error_code for topic in found.topics),
            repeatable=validate_only,
        )
        return Results({topic.name: _created(topic) for topic in answer.topics})

    async def delete(self, name: str) -> None:
        """Delete one topic with all its records."""
        (await self.delete_many([name])).check()

    async def delete_many(self, names: Collection[str]) -> Results[str, None]:
        """Delete topics with all their records."""
        wanted = tuple(dict.fromkeys(names))

        def make(version: int) -> DeleteTopicsRequest:
            timeout_ms = self._routes.request_timeout_ms
            if version < 6:
                return DeleteTopicsRequest(topic_names=wanted, timeout_ms=timeout_ms)
            states = tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in wanted)
            return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

        answer = await self._routes.ask_controller(
            ByVersion(DeleteTopicsRequest, make),
            lambda found: (item.error_code for item in found.responses),
        )
        self._routes.cluster.topology = self._routes.cluster.topology.without(wanted)
        return Results(
            {
                item.name or "": outcome_of(
                    item.error_code, f"cannot delete topic {item.name!r}", item.error_message, None
                )
                for item in answer.responses
            }
        )

    async def add_partitions(
        self,
        name: str,
        total: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Let a topic have `total` partitions. Keys may go to other partitions than before.

        `assignment` says which brokers hold each new one.
        """
        placed = None
        if assignment is not None:
            placed = tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in assignment)
        topic = CreatePartitionsTopic(name=name, partition_count=total, assignments=placed)
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=self._routes.request_timeout_ms, validate_only=validate_only
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (item.error_code for item in found.results), repeatable=validate_only
        )
        for item in answer.results:
            if item.error_code is not ErrorCode.NONE:
                raise BrokerError(item.error_code, f"cannot add partitions to {name!r}", item.error_message)
        await self._routes.cluster.refresh([name])

    async def _metadata(self, names: Sequence[str] | None) -> MetadataResponse:
        wanted = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: MetadataResponse = await self._routes.ask_any(request)
        return answer

    async def _describe_in_pages(self, names: Sequence[str]) -> Results[str, TopicDescription]:
        found: dict[str, TopicDescription | ClientError] = {}
        cursor: Cursor | None = None
        topics = tuple(DescribeTopicPartitionsRequestTopic(name=name) for name in names)
        while True:
            answer = await self._routes.ask_any(DescribeTopicPartitionsRequest(topics=topics, cursor=cursor))
            for topic in answer.topics:
                name = topic.name or ""
                page = _described(topic)
                before = found.get(name)
                if isinstance(before, TopicDescription) and isinstance(page, TopicDescription):
                    page = _joined(before, page)
                found[name] = page
            if answer.next_cursor is None:
                return Results(found)
            # The cursor says where the next page starts; what comes before it must not be asked for again.
            cursor = answer.next_cursor
            topics = tuple(topic for topic in topics if topic.name >= cursor.topic_name)


def _those_described(topics: Iterable[Any]) -> tuple[TopicDescription, ...]:
    described = map(_described, topics)
    return tuple(topic for topic in described if isinstance(topic, TopicDescription))


def _joined(before: TopicDescription, page: TopicDescription) -> TopicDescription:
    partitions = before.partitions + page.partitions
    return TopicDescription(before.name, before.topic_id, before.is_internal, partitions)


def _described(
    topic: DescribeTopicPartitionsResponseTopic | MetadataResponseTopic,
) -> TopicDescription | ClientError:
    if topic.error_code is not ErrorCode.NONE:
        return BrokerError(topic.error_code, f"cannot describe topic {topic.name!r}")
    partitions = (
        PartitionDescription(
            item.partition_index,
            item.leader_id,
            item.leader_epoch,
            item.replica_nodes,
            item.isr_nodes,
            item.offline_replicas,
            None if isinstance(item, MetadataResponsePartition) else item.eligible_leader_replicas,
            None if isinstance(item, MetadataResponsePartition) else item.last_known_elr,
        )
        for item in topic.partitions
    )
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(sorted(partitions, key=lambda item: item.partition)),
    )


def _creatable(topic: NewTopic, version: int) -> CreatableTopic:
    asks_for_defaults = topic.assignment is None and None in (topic.partitions, topic.replication_factor)
    if asks_for_defaults and version < 4:
        raise UnsupportedByBroker(
            "the broker is too old for default sizes: give the numbers of partitions and replicas of "
            f"{topic.name!r}"
        )
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=partition, broker_ids=tuple(brokers))
            for partition, brokers in (topic.assignment or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in (topic.configs or {}).items()
        ),
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic | ClientError:
    value = CreatedTopic(
        topic.name,
        topic.topic_id,
        topic.num_partitions,
        topic.replication_factor,
        {config.name: config.value for config in topic.configs or ()},
    )
    return outcome_of(topic.error_code, f"cannot create topic {topic.name!r}", topic.error_message, value)
