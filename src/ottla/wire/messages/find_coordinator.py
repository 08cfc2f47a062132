"""FindCoordinator (API key 10): which broker coordinates a group, a transaction or a share partition."""

from typing import Final

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

SEVERAL_FROM: Final = 4
SHARE: Final = 2
"""The type of a key that names a partition of a share group."""


@message(api_key=10, versions="0-6", flexible="3+", listeners=("broker",))
class FindCoordinatorRequest:
    """Ask for the coordinator of one key (v0-v3) or of many at once (v4+).

    v5 and v6 change no field: they widen which errors and key types an answer may use.
    """

    key: str = wire("0-3", default="")
    key_type: i8 = wire("1+", default=0)
    coordinator_keys: tuple[str, ...] = wire("4+", default=())


@struct
class FoundCoordinator:
    """The coordinator of one key, or why there is none (v4+)."""

    key: str = wire("4+")
    node_id: i32 = wire("4+")
    host: str = wire("4+")
    port: i32 = wire("4+")
    error_code: ErrorCode = wire("4+", default=ErrorCode.NONE)
    error_message: str | None = wire("4+", ignorable=True)


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """Give the coordinator of one key (v0-v3) or of each key (v4+).

    Where there is none the node id and the port are -1 and the host is empty.
    """

    throttle_time_ms: i32 = wire("1+", default=0, ignorable=True)
    error_code: ErrorCode = wire("0-3", default=ErrorCode.NONE)
    error_message: str | None = wire("1-3", default="", ignorable=True)
    node_id: i32 = wire("0-3", default=0)
    host: str = wire("0-3", default="")
    port: i32 = wire("0-3", default=0)
    coordinators: tuple[FoundCoordinator, ...] = wire("4+", default=())
