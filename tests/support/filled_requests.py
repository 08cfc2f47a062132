"""Requests of every API in every version, with a name in each place that has one."""

from typing import Any

from ottla.model.uuid import Uuid
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import replace
from ottla.wire.layout import empty, layout_of
from ottla.wire.messages.delete_topics import DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequestTopic


def _filled(cls: type[Any], version: int, topic: str, topic_id: Uuid) -> Any:
    """Return a message with one element in every list, and a name in every place that has one."""
    changes: dict[str, Any] = {}
    for field in layout_of(cls):
        if version not in field.versions:
            continue
        value: Any = {"string": topic, "uuid": topic_id, "records": memoryview(b"")}.get(field.kind)
        if field.struct is not None:
            value = _filled(field.struct, version, topic, topic_id)
        if field.name in ("resource_type", "resource_types", "resource_type_filter"):
            value = 2
        if field.name in ("operation", "permission_type"):
            value = 3
        if field.name == "timeout_ms":
            value = 30_000
        if field.is_array:
            changes[field.name] = (0 if value is None else value,)
        elif value is not None and field.name not in ("cursor", "transactional_id_pattern"):
            changes[field.name] = value
    return replace(empty(cls), **changes)


def request_about(key: ApiKey, version: int, topic: str, topic_id: Uuid) -> Any:
    """Return a request of an API about a topic. Groups, transactional ids and users have its name, too."""
    ask = _filled(api_of(key).request, version, topic, topic_id)
    match key:
        case ApiKey.METADATA:
            # By id or by name, not both.
            asked = (
                MetadataRequestTopic(name=topic)
                if version < 12
                else MetadataRequestTopic(name=None, topic_id=topic_id)
            )
            return replace(ask, topics=(asked,))
        case ApiKey.DELETE_TOPICS if version >= 6:
            return replace(ask, topics=(DeleteTopicState(name=None, topic_id=topic_id),))
        case ApiKey.PRODUCE:
            return replace(ask, acks=1, transactional_id=None)
        case ApiKey.FETCH:
            return replace(ask, replica_id=-1, rack_id="", forgotten_topics_data=(), session_epoch=-1)
    return ask
