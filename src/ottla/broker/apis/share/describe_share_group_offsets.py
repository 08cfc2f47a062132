"""DescribeShareGroupOffsets: where share groups start in partitions, and how much is left to deliver."""

from ottla.broker.deferred import Deferred, gather
from ottla.broker.handling.latest_offsets import find_latest_offsets
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.share.persister import NO_START, StateSummary, Summaries
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.security.rights import Operation, on_group, on_topic
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

_NO_LAG = -1


@serves(
    DescribeShareGroupOffsetsRequest,
    "0-1",
    on_group(Operation.DESCRIBE),
    on_topic(Operation.DESCRIBE),
    checked_by=CheckedBy.HANDLER,
    cuts=(Cut("groups.topics.partitions", "groups.topics.partitions", at_once=250),),
)
def describe_share_group_offsets(
    ask: DescribeShareGroupOffsetsRequest, context: BrokerContext
) -> Deferred[DescribeShareGroupOffsetsResponse]:
    """Describe each group on its own."""
    answers = [_describe(group, context) for group in ask.groups]
    return gather(answers).then(lambda groups: DescribeShareGroupOffsetsResponse(groups=tuple(groups)))


def _describe(
    ask: DescribeShareGroupOffsetsRequestGroup, context: BrokerContext
) -> Deferred[DescribeShareGroupOffsetsResponseGroup]:
    if not context.broker.groups.serves_share_protocol:
        return Deferred.of(_group(ask.group_id, error_code=ErrorCode.UNSUPPORTED_VERSION))
    if not context.allows(on_group(Operation.DESCRIBE), ask.group_id):
        return Deferred.of(_group(ask.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    if ask.topics is None:
        return _describe_all(ask.group_id, context)
    return _describe_some(ask.group_id, ask.topics, context)


def _describe_all(group_id: str, context: BrokerContext) -> Deferred[DescribeShareGroupOffsetsResponseGroup]:
    answer: Deferred[DescribeShareGroupOffsetsResponseGroup] = Deferred()

    def go_on(partitions: Partitions) -> None:
        topics = context.broker.image.topics
        seen = {
            topic_id: numbers
            for topic_id, numbers in partitions.items()
            if (topic := topics.find_by_id(topic_id)) is not None
            and context.may(on_topic(Operation.DESCRIBE), topic.name)
        }
        _read(group_id, seen, context).when_done(lambda found: answer.resolve(_group(group_id, *found)))

    context.broker.groups.coordinator.share_starts.partitions(
        group_id,
        go_on,
        lambda refused: answer.resolve(_group(group_id, error_code=refused.error_code)),
    )
    return answer


def _describe_some(
    group_id: str, asked: tuple[DescribeShareGroupOffsetsRequestTopic, ...], context: BrokerContext
) -> Deferred[DescribeShareGroupOffsetsResponseGroup]:
    known: dict[Uuid, frozenset[int]] = {}
    others: list[DescribeShareGroupOffsetsResponseTopic] = []
    for topic in asked:
        found = context.broker.image.topics.find(topic.topic_name)
        if not context.allows(on_topic(Operation.DESCRIBE), topic.topic_name):
            others.append(_nothing(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif found is None:
            others.append(_nothing(topic, ErrorCode.NONE))
        else:
            known[found.id] = frozenset(topic.partitions)
    return _read(group_id, known, context).then(lambda topics: _group(group_id, *topics, *others))


def _read(
    group_id: str, partitions: Partitions, context: BrokerContext
) -> Deferred[list[DescribeShareGroupOffsetsResponseTopic]]:
    answer: Deferred[list[DescribeShareGroupOffsetsResponseTopic]] = Deferred()

    def summarized(summaries: Summaries) -> None:
        started = [one for one, summary in summaries.items() if _has_lag(summary)]
        find_latest_offsets(started, context).when_done(
            lambda latest: answer.resolve(_topics(partitions, summaries, latest, context))
        )

    context.broker.share_persister.summarize(group_id, partitions, summarized)
    return answer


def _has_lag(summary: StateSummary) -> bool:
    return (
        summary.error_code is ErrorCode.NONE
        and summary.start_offset != NO_START
        and summary.delivery_complete_count >= 0
    )


def _topics(
    partitions: Partitions,
    summaries: Summaries,
    latest: dict[tuple[Uuid, int], int | ErrorCode],
    context: BrokerContext,
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    shown = []
    for topic_id, numbers in partitions.items():
        topic = context.broker.image.topics.find_by_id(topic_id)
        shown.append(
            DescribeShareGroupOffsetsResponseTopic(
                topic_name="" if topic is None else topic.name,
                topic_id=topic_id,
                partitions=tuple(
                    _partition(number, summaries[topic_id, number], latest.get((topic_id, number)))
                    for number in sorted(numbers)
                ),
            )
        )
    return shown


def _partition(
    number: int, summary: StateSummary, latest: int | ErrorCode | None
) -> DescribeShareGroupOffsetsResponsePartition:
    if isinstance(latest, ErrorCode):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=number, start_offset=0, leader_epoch=0, lag=_NO_LAG, error_code=latest
        )
    is_known = summary.error_code is ErrorCode.NONE
    lag = _NO_LAG if latest is None else latest - summary.start_offset - summary.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=number,
        start_offset=summary.start_offset if is_known else NO_START,
        leader_epoch=summary.leader_epoch if is_known else 0,
        lag=lag,
    )


def _nothing(
    topic: DescribeShareGroupOffsetsRequestTopic, error_code: ErrorCode
) -> DescribeShareGroupOffsetsResponseTopic:
    is_refused = error_code is not ErrorCode.NONE
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID,
        partitions=tuple(
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=number,
                start_offset=NO_START,
                leader_epoch=0,
                error_code=error_code,
                error_message="Topic authorization failed." if is_refused else None,
            )
            for number in topic.partitions
        ),
    )


def _group(
    group_id: str,
    *topics: DescribeShareGroupOffsetsResponseTopic,
    error_code: ErrorCode = ErrorCode.NONE,
) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=topics, error_code=error_code)
