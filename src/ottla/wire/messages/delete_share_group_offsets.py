"""DeleteShareGroupOffsets (API key 92): a share group forgets topics."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class DeleteShareGroupOffsetsRequestTopic:
    """A topic to forget."""

    topic_name: str = wire("0+")


@message(api_key=92, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupOffsetsRequest:
    """Make an empty share group forget its position in some topics."""

    group_id: str = wire("0+")
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = wire("0+")


@struct
class DeleteShareGroupOffsetsResponseTopic:
    """What became of one topic."""

    topic_name: str = wire("0+")
    topic_id: Uuid = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)


@message(api_key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """Say for each topic whether the share group forgot it."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", default=None)
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = wire("0+")
