"""DescribeLogDirs: what lies in this node's log directories, and how much room is left."""

from collections.abc import Callable, Iterable

from ottla.broker.node import BrokerContext
from ottla.broker.serving.handlers import serves
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, on_cluster
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.world.disk import DiskError


@serves(DescribeLogDirsRequest, "1-5", on_cluster(Operation.DESCRIBE))
def describe_log_dirs(ask: DescribeLogDirsRequest, context: BrokerContext) -> DescribeLogDirsResponse:
    """Describe every directory, those that failed as well."""
    directories = context.broker.directories
    is_asked = _filter(ask)
    online = [_describe(directory, is_asked, context) for directory in directories.online]
    offline = [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=())
        for path in directories.offline_paths
    ]
    return DescribeLogDirsResponse(results=(*online, *offline))


def _filter(ask: DescribeLogDirsRequest) -> Callable[[TopicPartition], bool]:
    if ask.topics is None:
        return lambda _: True
    asked = {(topic.topic, number) for topic in ask.topics for number in topic.partitions}
    return lambda key: key in asked


def _describe(
    directory: LogDirectory, is_asked: Callable[[TopicPartition], bool], context: BrokerContext
) -> DescribeLogDirsResult:
    try:
        total_bytes, usable_bytes = directory.volume.disk.usage(directory.path)
    except DiskError:
        total_bytes = usable_bytes = -1
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for log, lag, is_future in _logs(directory, context):
        if is_asked(log.topic_partition):
            by_topic.setdefault(log.topic_partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=log.topic_partition.partition,
                    partition_size=log.size_bytes,
                    offset_lag=lag,
                    is_future_key=is_future,
                )
            )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
            for name, partitions in by_topic.items()
        ),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=directory.path in context.broker.directories.cordoned,
    )


def _logs(directory: LogDirectory, context: BrokerContext) -> Iterable[tuple[Log, int, bool]]:
    """Give each log, by how many offsets it lags behind, and whether it is still being moved here."""
    for log in directory.logs.values():
        yield log, max(log.high_watermark - log.log_end_offset, 0), False
    for log in directory.future_logs.values():
        current = context.broker.directories.find(log.topic_partition)
        lag = 0 if current is None else current.log_end_offset - log.log_end_offset
        yield log, lag, True
