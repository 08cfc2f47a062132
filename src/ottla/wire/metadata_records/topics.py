"""Metadata records of topics."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import message, wire


@message(api_key=2, versions="0", flexible="0+")
class TopicRecord:
    """Record a new topic: its name and its id."""

    name: str = wire("0+")
    topic_id: Uuid = wire("0+")


@message(api_key=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    """Record that a topic is gone, and with it its partitions and configs."""

    topic_id: Uuid = wire("0+")
