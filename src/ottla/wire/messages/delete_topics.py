"""DeleteTopics (API key 20): topics are deleted."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

DISABLED_FROM: Final = 3


@struct
class DeleteTopicState:
    """A topic to delete, by its name or, where that is null, by its id (v6+)."""

    name: str | None = wire("6+", default=None)
    topic_id: Uuid = wire("6+")


@message(api_key=20, versions="1-6", flexible="4+", listeners=("broker", "controller"))
class DeleteTopicsRequest:
    """Delete topics by name (v1-v5), or each by name or id (v6+).

    From v5 on a client over its mutation quota gets an error instead of a delay.
    """

    topics: tuple[DeleteTopicState, ...] = wire("6+", default=())
    topic_names: tuple[str, ...] = wire("0-5", default=(), ignorable=True)
    timeout_ms: i32 = wire("0+")


@struct
class DeletableTopicResult:
    """What became of one topic."""

    name: str | None = wire("0+", nullable="6+", map_key=True)
    topic_id: Uuid = wire("6+", default=ZERO_UUID, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("5+", default=None, ignorable=True)


@message(api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """Say for each topic whether it was deleted.

    v5 adds error messages. v6 adds topic ids, and the name is null where the client may not see it.
    """

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = wire("0+")
