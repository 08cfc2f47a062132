"""DeleteTopics, by name or by id."""

from collections import Counter
from typing import Any

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.metadata_records.topics import RemoveTopicRecord


def refuse_delete_topics(ask: DeleteTopicsRequest, refusal: Refusal) -> DeleteTopicsResponse:
    """Refuse all topics of a request."""
    return DeleteTopicsResponse(responses=tuple(_refused(topic, refusal) for topic in _wanted(ask)))


@decides(DeleteTopicsRequest, refuse=refuse_delete_topics, strict_from=5)
def decide_delete_topics(view: ControllerView, ask: DeleteTopicsRequest) -> Decision[DeleteTopicsResponse]:
    """Delete topics. Each is decided on its own; their logs go when the brokers have read the record."""
    wanted = _wanted(ask)
    if not view.configs.node.delete_topic_enable:
        disabled = Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        return Decision(refuse_delete_topics(ask, disabled))
    times = Counter(_topic_of(view, topic) for topic in wanted if not _is_named_twice(topic))
    times[None] = 1
    results: dict[tuple[str | None, Uuid], DeletableTopicResult] = {}
    records: list[Any] = []
    for topic in wanted:
        try:
            _check_once(topic, times[_topic_of(view, topic)])
            topic_id = _find(view, topic)
            view.charge(len(view.image.topics.by_id[topic_id].partitions))
        except Refusal as refusal:
            results[topic.name, topic.topic_id] = _refused(topic, refusal)
        else:
            name = view.image.topics.by_id[topic_id].name
            results[topic.name, topic.topic_id] = DeletableTopicResult(name=name, topic_id=topic_id)
            records.append(RemoveTopicRecord(topic_id=topic_id))
    try:
        check_record_count(len(records))
    except Refusal as refusal:
        return Decision(refuse_delete_topics(ask, refusal))
    return Decision(DeleteTopicsResponse(responses=tuple(results.values())), records)


def _wanted(ask: DeleteTopicsRequest) -> tuple[DeleteTopicState, ...]:
    """Return the topics to delete. Up to v5 they are named in a list of their own."""
    return (*ask.topics, *(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in ask.topic_names))


def _topic_of(view: ControllerView, topic: DeleteTopicState) -> Uuid | str | None:
    """Return what tells topics apart, however they are called."""
    if topic.name is None:
        return topic.topic_id if topic.topic_id != ZERO_UUID else None
    return view.image.topics.names.get(topic.name, topic.name)


def _is_named_twice(topic: DeleteTopicState) -> bool:
    return topic.name is not None and topic.topic_id != ZERO_UUID


def _find(view: ControllerView, topic: DeleteTopicState) -> Uuid:
    if topic.name is None:
        if topic.topic_id == ZERO_UUID:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if topic.topic_id not in view.image.topics.by_id:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic.topic_id
    if _is_named_twice(topic):
        raise Refusal(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    topic_id = view.image.topics.names.get(topic.name)
    if topic_id is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic_id


def _check_once(topic: DeleteTopicState, times: int) -> None:
    if times > 1:
        named = "id" if topic.name is None else "name"
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Duplicate topic {named}.")


def _refused(topic: DeleteTopicState, refusal: Refusal) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=refusal.error_code,
        error_message=refusal.message,
    )
