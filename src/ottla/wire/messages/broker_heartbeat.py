"""BrokerHeartbeat (API key 63): a broker keeps its registration alive."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, i64, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=63, versions="0-2", flexible="0+", listeners=("controller",))
class BrokerHeartbeatRequest:
    """A broker tells the controller that it lives, how far it has read, and what it wants.

    It may wish to be fenced or to shut down. v1 adds the log directories that failed,
    v2 the ones closed for new replicas (null: not known yet).
    """

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+", default=-1)
    current_metadata_offset: i64 = wire("0+")
    want_fence: bool = wire("0+")
    want_shut_down: bool = wire("0+")
    offline_log_dirs: tuple[Uuid, ...] = wire("1+", default=(), tag=0)
    cordoned_log_dirs: tuple[Uuid, ...] | None = wire("2+", default=None, tag=1)


@message(api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    """Tell the broker whether it has caught up, is fenced, and may now shut down."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    is_caught_up: bool = wire("0+", default=False)
    is_fenced: bool = wire("0+", default=True)
    should_shut_down: bool = wire("0+")
