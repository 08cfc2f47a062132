"""BrokerRegistration (API key 62): a broker joins the cluster."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i16, i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class Listener:
    """A listener on which the broker serves."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")
    security_protocol: i16 = wire("0+")


@struct
class Feature:
    """A feature and the range of levels that the broker supports."""

    name: str = wire("0+", map_key=True)
    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@message(api_key=62, versions="0-4", flexible="0+", listeners=("controller",))
class BrokerRegistrationRequest:
    """A starting broker asks the controller to be made part of the cluster.

    v1 adds a flag of the ZooKeeper migration, v2 the log directories, v3 the epoch the broker had before
    a clean stop. v4 changes no field: a feature's lowest level may then be 0.
    """

    broker_id: i32 = wire("0+")
    cluster_id: str = wire("0+")
    incarnation_id: Uuid = wire("0+")
    listeners: tuple[Listener, ...] = wire("0+")
    features: tuple[Feature, ...] = wire("0+")
    rack: str | None = wire("0+")
    is_migrating_zk_broker: bool = wire("1+", default=False)
    log_dirs: tuple[Uuid, ...] = wire("2+", default=(), ignorable=True)
    previous_broker_epoch: i64 = wire("3+", default=-1, ignorable=True)


@message(api_key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    """Give the broker the epoch of its registration, which its later requests must carry."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    broker_epoch: i64 = wire("0+", default=-1)
