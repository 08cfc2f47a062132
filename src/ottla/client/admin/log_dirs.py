"""Log directories: what lies where, and how many bytes it takes."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, by_topic
from ottla.client.errors import BrokerError, ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class ReplicaSize(NamedTuple):
    """One replica in a directory. A future one is on its way to it from another directory."""

    where: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """One directory of one broker. Sizes of the volume are -1 where the broker does not tell them."""

    path: str
    error_code: ErrorCode
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    replicas: tuple[ReplicaSize, ...]


class LogDirs:
    """The log directories of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(
        self, *, partitions: Collection[TopicPartition] | None = None
    ) -> Results[int, tuple[LogDir, ...]]:
        """Describe the directories of every broker, with all replicas or those of some partitions."""
        topics = None
        if partitions is not None:
            topics = tuple(
                DescribableLogDirTopic(topic=name, partitions=tuple(numbers))
                for name, numbers in by_topic(partitions).items()
            )
        answers = await self._routes.ask_all(DescribeLogDirsRequest(topics=topics))
        outcomes: dict[int, tuple[LogDir, ...] | ClientError] = dict(answers.failed)
        for node_id, answer in answers.succeeded.items():
            outcomes[node_id] = _of_broker(node_id, answer)
        return Results(dict(sorted(outcomes.items())))


def _of_broker(node_id: int, answer: DescribeLogDirsResponse) -> tuple[LogDir, ...] | ClientError:
    if answer.error_code is not ErrorCode.NONE:
        return BrokerError(answer.error_code, f"cannot describe the log directories of broker {node_id}")
    return tuple(_log_dir(item) for item in answer.results)


def _log_dir(item: DescribeLogDirsResult) -> LogDir:
    replicas = (
        ReplicaSize(
            TopicPartition(topic.name, part.partition_index),
            part.partition_size,
            part.offset_lag,
            part.is_future_key,
        )
        for topic in item.topics
        for part in topic.partitions
    )
    return LogDir(
        path=item.log_dir,
        error_code=item.error_code,
        total_bytes=item.total_bytes,
        usable_bytes=item.usable_bytes,
        is_cordoned=item.is_cordoned,
        replicas=tuple(sorted(replicas)),
    )
