"""FindCoordinator: which broker coordinates a group or a transactional id.

The coordinators' topic is made when somebody first asks for it, and the question is answered when it exists.
Deviation: Kafka refuses with COORDINATOR_NOT_AVAILABLE meanwhile, and its clients ask again after a while.
"""

from ottla.broker.cluster.auto_topics import create_missing_topics
from ottla.broker.deferred import Deferred
from ottla.broker.node import BrokerContext
from ottla.broker.serving.cuts import Cut
from ottla.broker.serving.handlers import CheckedBy, serves
from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.model.uuid import Uuid
from ottla.security.rights import Operation, on_group, on_transactional_id
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import (
    SEVERAL_FROM,
    SHARE,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
)


@serves(
    FindCoordinatorRequest,
    "0-6",
    on_group(Operation.DESCRIBE),
    on_transactional_id(Operation.DESCRIBE),
    checked_by=CheckedBy.GUARD,
    cuts=(Cut("coordinator_keys", "coordinators"),),
)
def find_coordinator(
    ask: FindCoordinatorRequest, context: BrokerContext
) -> FindCoordinatorResponse | Deferred[FindCoordinatorResponse]:
    """Answer every key on its own."""
    of_this_type = (one.topic for one in context.broker.coordinators if one.key_type == ask.key_type)
    topic = next(of_this_type, None)
    keys = ask.coordinator_keys if context.version >= SEVERAL_FROM else (ask.key,)
    if ask.key_type == SHARE and not any(map(_is_share_partition, keys)):
        # Nobody needs the topic.
        return _answer(ask, topic, context)
    if topic is None or context.broker.image.topics.find(topic) is not None:
        return _answer(ask, topic, context)
    return create_missing_topics([topic], context).then(lambda _: _answer(ask, topic, context))


def _answer(
    ask: FindCoordinatorRequest, topic: str | None, context: BrokerContext
) -> FindCoordinatorResponse:
    if context.version >= SEVERAL_FROM:
        return FindCoordinatorResponse(
            coordinators=tuple(_find(key, ask.key_type, topic, context) for key in ask.coordinator_keys)
        )
    found = _find(ask.key, ask.key_type, topic, context)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_code.name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(key: str, key_type: int, topic_name: str | None, context: BrokerContext) -> FoundCoordinator:
    broker = context.broker
    if topic_name is None or (key_type == SHARE and not _is_share_partition(key)):
        return _none(key, ErrorCode.INVALID_REQUEST)
    topic = broker.image.topics.find(topic_name)
    if topic is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[partition_of_key(key, len(topic.partitions))].leader
    for endpoint in broker.endpoints.living(context):
        if endpoint.node_id == leader:
            return FoundCoordinator(
                key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=""
            )
    return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _is_share_partition(key: str) -> bool:
    """Say whether a key has the form GROUP:TOPIC-ID:PARTITION."""
    group_id, _, rest = key.partition(":")
    topic_id, _, number = rest.partition(":")
    try:
        Uuid.from_text(topic_id)
        int(number)
    except ValueError:
        return False
    return bool(group_id.strip())


def _none(key: str, error_code: ErrorCode) -> FoundCoordinator:
    return FoundCoordinator(key=key, node_id=-1, host="", port=-1, error_code=error_code, error_message="")
