"""Answers to StreamsGroupHeartbeat."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.coordination.group.streams.internal_topics import InternalTopic
from ottla.coordination.group.streams.tasks import Tasks
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)


class HeartbeatOutcome(NamedTuple):
    """The answer, and the internal topics that the broker has to create."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic] = {}


def refused_heartbeat(error_code: ErrorCode, message: str | None = None) -> HeartbeatOutcome:
    """Return the answer to a heartbeat that is not served."""
    return HeartbeatOutcome(_response(error_code=error_code, error_message=message))


def answer(ask: StreamsGroupHeartbeatRequest, **fields: Any) -> StreamsGroupHeartbeatResponse:
    """Answer a member."""
    return _response(member_id=ask.member_id, **fields)


def _response(**fields: Any) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(**{**_EMPTY, **fields})


_EMPTY: Final = {
    "member_id": "",
    "member_epoch": 0,
    "heartbeat_interval_ms": 0,
    "acceptable_recovery_lag": 0,
    "task_offset_interval_ms": 0,
    "status": (),
    "endpoint_information_epoch": 0,
}


def task_ids(tasks: Tasks | Mapping[str, Mapping[int, int]]) -> tuple[TaskIds, ...]:
    """Return tasks as an answer lists them."""
    return tuple(TaskIds(subtopology_id=one, partitions=tuple(sorted(tasks[one]))) for one in sorted(tasks))
