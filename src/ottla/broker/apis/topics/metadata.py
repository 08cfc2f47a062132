"""Metadata: the brokers, and the partitions of topics with their leaders.

A topic that is missing may be created for the client that asks for it. As in Kafka, the answer does not wait
for that: it says UNKNOWN_TOPIC_OR_PARTITION, and the client asks again. Clients use the first answer to see
whether a topic is there, and suites of theirs check that it is not.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from ottla.broker.apis.cluster.describe_cluster import cluster_operations
from ottla.broker.cluster.auto_topics import create_missing_topics, why_unknown
from ottla.broker.logs.partition import UNLISTED_TOPICS
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.broker.serving.replies import EncodedResponse
from ottla.metadata.topics import Topic
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.security.rights import (
    ALL_ON_TOPIC,
    CLUSTER,
    NOT_ASKED,
    Operation,
    ResourceType,
    on_cluster,
    on_topic,
)
from ottla.wire.codec import encode_struct
from ottla.wire.declare import replace
from ottla.wire.encoded_items import as_array
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import (
    IDS_IN_REQUEST_FROM,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

_DESCRIBE: Final = on_topic(Operation.DESCRIBE)
_CREATE: Final = on_topic(Operation.CREATE)


def _asked_by_id(topics: Sequence[MetadataRequestTopic]) -> tuple[MetadataRequestTopic, ...]:
    return tuple([topic for topic in topics if topic.topic_id != ZERO_UUID])


def _narrow(ask: MetadataRequest) -> MetadataRequest:
    """As in Kafka, a request asks by ids or by names. If there are ids, names are not looked at."""
    by_id = _asked_by_id(ask.topics or ())
    return replace(ask, topics=by_id) if by_id else ask


@serves(
    MetadataRequest,
    "0-13",
    on_topic(Operation.DESCRIBE),
    on_topic(Operation.CREATE),
    checked_by=CheckedBy.HANDLER,
    has_short_answers=True,
    cuts=(Cut("topics", "topics", key=tuple, drops_repeated=True, narrow=_narrow),),
)
def metadata(ask: MetadataRequest, context: BrokerContext) -> EncodedResponse | MetadataResponse:
    """Answer from what was answered before or from the image, and let missing topics be created."""
    if context.portion_of:
        return _answer_portion(ask, context)
    answers = context.broker.metadata_answers
    known = answers.find(ask, context)
    if known is not None:
        return known
    if context.version < IDS_IN_REQUEST_FROM:
        if _asks_by_id(ask):
            return _refuse(ask)
    else:
        ask = _narrow(ask)
    missing = _missing_topics(ask, context)
    if not missing:
        return answers.keep(ask, context, _respond(ask, context))
    response = _respond(ask, context)
    _maybe_create(missing, ask, context)
    return response


def _answer_portion(ask: MetadataRequest, context: BrokerContext) -> MetadataResponse:
    """Answer a part of a large request. Nobody asks the same again, so the answer is not kept."""
    if context.version < IDS_IN_REQUEST_FROM and _asks_by_id(ask):
        return _refuse(ask)
    response = _respond(ask, context)
    # As in Kafka, no more are created at once than one request may create.
    if context.portion_of <= RECORDS_MAX:
        _maybe_create(_missing_topics(ask, context), ask, context)
    return response


def _maybe_create(missing: list[str], ask: MetadataRequest, context: BrokerContext) -> None:
    if not missing:
        return
    if _creates_topics(ask, context):
        allowed = [name for name in missing if context.may(_DESCRIBE, name) and _may_create(name, context)]
        # The request may have waited behind a fetch, and its sender may be gone since. If the topic was
        # deleted meanwhile, nobody wants it back.
        if allowed and not context.has_hung_up():
            create_missing_topics(allowed, context)
    else:
        context.broker.journal.topics_unknown(context, missing)


def _creates_topics(ask: MetadataRequest, context: BrokerContext) -> bool:
    return ask.allow_auto_topic_creation and context.broker.config.auto_create_topics_enable


def _may_create(name: str, context: BrokerContext) -> bool:
    return context.may(on_cluster(Operation.CREATE), CLUSTER) or context.allows(_CREATE, name)


def _asks_by_id(ask: MetadataRequest) -> bool:
    return any(topic.topic_id != ZERO_UUID or topic.name is None for topic in ask.topics or ())


def _refuse(ask: MetadataRequest) -> MetadataResponse:
    """Answer a request that asks by id in a version which cannot."""
    return MetadataResponse(
        brokers=(),
        topics=tuple(
            _unknown(topic, ErrorCode.INVALID_REQUEST, topic.name or "") for topic in ask.topics or ()
        ),
    )


def _missing_topics(ask: MetadataRequest, context: BrokerContext) -> list[str]:
    """Return the topics asked for by name that do not exist."""
    if ask.topics is None:
        return []
    known = context.broker.image.topics.names
    return [
        topic.name
        for topic in ask.topics
        if topic.topic_id == ZERO_UUID and topic.name is not None and topic.name not in known
    ]


def _respond(ask: MetadataRequest, context: BrokerContext) -> MetadataResponse:
    broker = context.broker
    living = broker.endpoints.living(context)
    asks_cluster_operations = ask.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in living
        ),
        cluster_id=broker.cluster_id,
        # Clients cannot reach a controller. Any living broker passes on what is for it.
        controller_id=living[0].node_id if living else -1,
        topics=_describe_topics(ask, context, frozenset(node.node_id for node in living)),
        cluster_authorized_operations=(cluster_operations(context) if asks_cluster_operations else NOT_ASKED),
    )


def _describe_topics(ask: MetadataRequest, context: BrokerContext, living: frozenset[int]) -> Any:
    """Return what stands for the array of topics. Each of them is encoded already."""
    topics = context.broker.image.topics
    version = context.version
    if context.broker.authorizer.is_active:
        return _describe_visible(ask, context, living)
    describe = partial(
        context.broker.metadata_answers.described_topics.describe,
        living=living,
        operations=_topic_operations(ask),
        version=version,
    )
    if ask.topics is None or (version == 0 and not ask.topics):
        described = describe(_listed(topics))
        return as_array(len(described), b"".join(described))
    found: dict[str | bytes, bytes] = {}
    for asked in ask.topics:
        is_named = asked.topic_id == ZERO_UUID
        topic = topics.find(asked.name or "") if is_named else topics.find_by_id(asked.topic_id)
        found[asked.name or "" if is_named else asked.topic_id] = (
            encode_struct(_explain_unknown(asked, ask), MetadataResponse, version)
            if topic is None
            else describe((topic,))[0]
        )
    return as_array(len(found), b"".join(found.values()))


def _listed(topics: Iterable[Topic]) -> list[Topic]:
    return [topic for topic in topics if topic.name not in UNLISTED_TOPICS]


def _describe_visible(ask: MetadataRequest, context: BrokerContext, living: frozenset[int]) -> Any:
    """Do the same where access rules hold: of what a client may not describe, it learns nothing."""
    topics, version = context.broker.image.topics, context.version
    described_topics = context.broker.metadata_answers.described_topics

    def describe(topic: Topic) -> bytes:
        operations = NOT_ASKED
        if ask.include_topic_authorized_operations:
            operations = context.operations(ResourceType.TOPIC, topic.name)
        return described_topics.describe((topic,), living, operations, version)[0]

    if ask.topics is None or (version == 0 and not ask.topics):
        visible = [describe(topic) for topic in _listed(topics) if context.may(_DESCRIBE, topic.name)]
        return as_array(len(visible), b"".join(visible))
    found: dict[str | bytes, bytes] = {}
    for asked in ask.topics:
        is_named = asked.topic_id == ZERO_UUID
        topic = topics.find(asked.name or "") if is_named else topics.find_by_id(asked.topic_id)
        refusal = _find_refusal(asked, topic, ask, context)
        found[asked.name or "" if is_named else asked.topic_id] = (
            describe(topic)
            if topic is not None and refusal is None
            else encode_struct(refusal, MetadataResponse, version)
        )
    return as_array(len(found), b"".join(found.values()))


def _find_refusal(
    asked: MetadataRequestTopic, topic: Topic | None, ask: MetadataRequest, context: BrokerContext
) -> MetadataResponseTopic | None:
    """Return why a topic is not described; None if it is."""
    is_named = asked.topic_id == ZERO_UUID
    name = (asked.name or "") if is_named else None if topic is None else topic.name
    if name is None:
        return _explain_unknown(asked, ask)
    if not context.allows(_DESCRIBE, name):
        return _unknown(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked.name if is_named else None)
    if topic is not None:
        return None
    if _creates_topics(ask, context) and not _may_create(name, context):
        return _unknown(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    operations = NOT_ASKED
    if ask.include_topic_authorized_operations:
        operations = context.operations(ResourceType.TOPIC, name)
    return _unknown(asked, why_unknown(name), name, operations)


def _topic_operations(ask: MetadataRequest) -> int:
    return ALL_ON_TOPIC if ask.include_topic_authorized_operations else NOT_ASKED


def _explain_unknown(asked: MetadataRequestTopic, ask: MetadataRequest) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_UUID:
        return _unknown(asked, ErrorCode.UNKNOWN_TOPIC_ID, None)
    return _unknown(asked, why_unknown(asked.name or ""), asked.name, _topic_operations(ask))


def _unknown(
    asked: MetadataRequestTopic, error_code: ErrorCode, name: str | None, operations: int = NOT_ASKED
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=asked.topic_id,
        partitions=(),
        topic_authorized_operations=operations,
    )
