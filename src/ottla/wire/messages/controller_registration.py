"""ControllerRegistration (API key 70): a controller makes itself known to the active one."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i16, i32, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class Listener:
    """A listener on which the controller serves."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")
    security_protocol: i16 = wire("0+")


@struct
class Feature:
    """A feature and the range of levels that the controller supports."""

    name: str = wire("0+", map_key=True)
    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@message(api_key=70, versions="0", flexible="0+", listeners=("controller",))
class ControllerRegistrationRequest:
    """A starting controller tells the active one its listeners and supported features."""

    controller_id: i32 = wire("0+")
    incarnation_id: Uuid = wire("0+")
    zk_migration_ready: bool = wire("0+")
    listeners: tuple[Listener, ...] = wire("0+")
    features: tuple[Feature, ...] = wire("0+")


@message(api_key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    """Say whether the controller was registered."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
