"""Metadata records of controllers."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i16, i32, message, struct, u16, wire


@struct
class ControllerEndpoint:
    """A listener on which the controller serves."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")
    security_protocol: i16 = wire("0+")


@struct
class ControllerFeature:
    """A feature and the range of levels that the controller supports."""

    name: str = wire("0+", map_key=True)
    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@message(api_key=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    """Record a controller's registration: its listeners and the features it supports."""

    controller_id: i32 = wire("0+")
    incarnation_id: Uuid = wire("0+")
    zk_migration_ready: bool = wire("0+")
    endpoints: tuple[ControllerEndpoint, ...] = wire("0+")
    features: tuple[ControllerFeature, ...] = wire("0+")
