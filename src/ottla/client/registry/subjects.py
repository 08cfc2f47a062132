"""Under which subject the schema of a record is registered."""

from collections.abc import Callable

SubjectStrategy = Callable[[str, bool, str | None], str]
"""(topic, is it the key, full name of what the schema describes) -> subject."""


def topic_name(topic: str, is_key: bool, _record_name: str | None) -> str:
    """Name the subject by the topic: all records of a topic have versions of one schema."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(_topic: str, _is_key: bool, name: str | None) -> str:
    """Name the subject by the record: a schema is the same in all topics."""
    return _needed(name)


def topic_record_name(topic: str, _is_key: bool, name: str | None) -> str:
    """Name the subject by both: a topic has records of several kinds."""
    return f"{topic}-{_needed(name)}"


def _needed(name: str | None) -> str:
    if name is None:
        raise ValueError("the schema has no name: give it one, or use another strategy for subjects")
    return name
