"""CreateTopics and CreatePartitions: new topics, and more partitions for old ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.metadata.configs.alter import MIN_ISR, check_new_topic
from ottla.metadata.configs.describe import describe_created_topic
from ottla.metadata.configs.errors import ChangeRefused
from ottla.model.topic_names import collision_key, find_topic_name_fault
from ottla.model.uuid import Uuid
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import (
    RECORDS_MAX,
    ControllerView,
    Decision,
    Refusal,
    check_record_count,
)
from ottla.quorum.controller.partitions.placement import (
    Assignment,
    check_manual_assignment,
    new_partition_fields,
    place_partitions,
)
from ottla.quorum.controller.producer_ids import own_range
from ottla.quorum.random_id import random_id
from ottla.storage.names import METADATA_PARTITION
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionRecord
from ottla.wire.metadata_records.topics import TopicRecord

_DEFAULT: Final = -1
_PARTITIONS_MAX: Final = RECORDS_MAX


def refuse_create_topics(ask: CreateTopicsRequest, refusal: Refusal) -> CreateTopicsResponse:
    """Refuse all topics of a request."""
    return CreateTopicsResponse(topics=tuple(_refused_topic(topic.name, refusal) for topic in ask.topics))


@decides(CreateTopicsRequest, refuse=refuse_create_topics, strict_from=6)
def decide_create_topics(view: ControllerView, ask: CreateTopicsRequest) -> Decision[CreateTopicsResponse]:
    """Create topics. Each is decided on its own: one that is refused spoils no other."""
    try:
        return _create_topics(view, ask)
    except Refusal as refusal:
        return Decision(refuse_create_topics(ask, refusal))


def _create_topics(view: ControllerView, ask: CreateTopicsRequest) -> Decision[CreateTopicsResponse]:
    times = Counter(topic.name for topic in ask.topics)
    allowed = [topic for topic in ask.topics if times[topic.name] == 1 and not _is_metadata(topic.name)]
    _check_partition_count(view, allowed)
    results: list[CreatableTopicResult] = []
    records: list[Any] = []
    colliding = _find_collisions(view, allowed)
    for topic in allowed:
        try:
            _check_name(view, topic.name, colliding)
            result, new_records = _create_topic(view, topic)
        except Refusal as refusal:
            results.append(_refused_topic(topic.name, refusal))
        else:
            results.append(result)
            records += new_records
    check_record_count(len(records))
    results += [
        _refused_topic(name, _not_allowed(name))
        for name, count in times.items()
        if count > 1 or _is_metadata(name)
    ]
    reply = CreateTopicsResponse(topics=tuple(results))
    return Decision(reply) if ask.validate_only else Decision(reply, records)


def _is_metadata(name: str) -> bool:
    return name == METADATA_PARTITION.topic


def _not_allowed(name: str) -> Refusal:
    if _is_metadata(name):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    return Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _refused_topic(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.error_code, error_message=refusal.message)


def _check_partition_count(view: ControllerView, topics: Sequence[CreatableTopic]) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _DEFAULT:
            total += view.configs.node.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > _PARTITIONS_MAX:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request. "
            f"It creates {total}, at most {_PARTITIONS_MAX} are allowed at once.",
        )


def _find_collisions(view: ControllerView, topics: Sequence[CreatableTopic]) -> Mapping[str, str]:
    """Return existing topics by what they may not have in common with a new one (`a.b` with `a_b`)."""
    if not any("." in topic.name or "_" in topic.name for topic in topics):
        return {}
    return {collision_key(name): name for name in view.image.topics.names if "." in name or "_" in name}


def _check_name(view: ControllerView, name: str, colliding: Mapping[str, str]) -> None:
    fault = find_topic_name_fault(name)
    if fault is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in view.image.topics.names:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = colliding.get(collision_key(name)) if "." in name or "_" in name else None
    if other is not None:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def _create_topic(view: ControllerView, topic: CreatableTopic) -> tuple[CreatableTopicResult, list[Any]]:
    try:
        overrides = check_new_topic([(config.name, config.value) for config in topic.configs])
    except ChangeRefused as refused:
        raise Refusal(refused.error_code, refused.message) from refused
    assignments = _manual(view, topic) if topic.assignments else _placed(view, topic)
    view.charge(len(assignments))
    topic_id = random_id(view.random)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=describe_created_topic(view.configs, overrides),
    )
    records = [
        TopicRecord(name=topic.name, topic_id=topic_id),
        *_config_records(view, topic.name, overrides),
        *_partition_records(view, topic_id, 0, assignments),
    ]
    return result, records


def _manual(view: ControllerView, topic: CreatableTopic) -> list[Assignment]:
    for value, name in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != _DEFAULT:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    assignments: dict[int, Assignment] = {}
    replication_factor: int | None = None
    for one in topic.assignments:
        if one.partition_index in assignments:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {one.partition_index}",
            )
        check_manual_assignment(view, one.broker_ids, replication_factor, one.partition_index)
        replication_factor = len(one.broker_ids)
        assignments[one.partition_index] = one.broker_ids
    if sorted(assignments) != list(range(len(assignments))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [assignments[partition] for partition in range(len(assignments))]


def _placed(view: ControllerView, topic: CreatableTopic) -> list[Assignment]:
    replication_factor, count = topic.replication_factor, topic.num_partitions
    if replication_factor < _DEFAULT or replication_factor == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < _DEFAULT or count == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    node = view.configs.node
    return place_partitions(
        view,
        node.num_partitions if count == _DEFAULT else count,
        node.default_replication_factor if replication_factor == _DEFAULT else replication_factor,
    )


def _config_records(view: ControllerView, topic: str, overrides: Mapping[str, str]) -> list[Any]:
    records: list[Any] = [
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)
        for name, value in overrides.items()
    ]
    if MIN_ISR in overrides and view.elr_enabled:
        records.append(ClearElrRecord(topic_name=topic))
    return records + own_range(view, overrides)


def _partition_records(
    view: ControllerView, topic_id: Uuid, first: int, assignments: Sequence[Assignment]
) -> list[PartitionRecord]:
    # Most partitions of a topic have one of few assignments, and with one broker all have the same.
    fields = {assignment: new_partition_fields(view, assignment) for assignment in set(assignments)}
    return [
        PartitionRecord(partition_id=partition, topic_id=topic_id, **fields[assignment])
        for partition, assignment in enumerate(assignments, first)
    ]


def refuse_create_partitions(ask: CreatePartitionsRequest, refusal: Refusal) -> CreatePartitionsResponse:
    """Refuse all topics of a request."""
    return CreatePartitionsResponse(
        results=tuple(_refused_partitions(topic.name, refusal) for topic in ask.topics)
    )


@decides(CreatePartitionsRequest, refuse=refuse_create_partitions, strict_from=3)
def decide_create_partitions(
    view: ControllerView, ask: CreatePartitionsRequest
) -> Decision[CreatePartitionsResponse]:
    """Add partitions to topics. Each topic is decided on its own."""
    times = Counter(topic.name for topic in ask.topics)
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_refused_partitions(name, duplicate) for name, count in times.items() if count > 1]
    records: list[Any] = []
    for topic in ask.topics:
        if times[topic.name] > 1:
            continue
        try:
            new_records = _create_partitions(view, topic, len(records))
        except Refusal as refusal:
            results.append(_refused_partitions(topic.name, refusal))
        else:
            records += new_records
            results.append(CreatePartitionsTopicResult(name=topic.name))
    reply = CreatePartitionsResponse(results=tuple(results))
    return Decision(reply) if ask.validate_only else Decision(reply, records)


def _refused_partitions(name: str, refusal: Refusal) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=refusal.error_code, error_message=refusal.message
    )


def _create_partitions(
    view: ControllerView, ask: CreatePartitionsTopic, records_before: int
) -> list[PartitionRecord]:
    topic = view.image.topics.find(ask.name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{ask.name}' does not exist.")
    present = len(topic.partitions)
    added = ask.partition_count - present
    if added == 0:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if added < 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {ask.name} currently has {present} partition(s); {ask.partition_count} would not be "
            "an increase.",
        )
    # Before anything is placed: a request that asks for too much costs nothing.
    check_record_count(records_before + added)
    if ask.assignments is not None and len(ask.assignments) != added:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only {len(ask.assignments)} "
            "assignment(s) were specified.",
        )
    view.charge(added)
    replication_factor = len(topic.partitions[0].replicas)
    if ask.assignments is None:
        assignments = place_partitions(view, added, replication_factor)
    else:
        assignments = [one.broker_ids for one in ask.assignments]
        for partition, assignment in enumerate(assignments, present):
            check_manual_assignment(view, assignment, replication_factor, partition)
    return _partition_records(view, topic.id, present, assignments)
