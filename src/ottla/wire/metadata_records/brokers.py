"""Metadata records of brokers: registered, fenced, shutting down, gone."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i16, i32, i64, message, struct, u16, wire


@struct
class BrokerEndpoint:
    """A listener on which the broker serves."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")
    security_protocol: i16 = wire("0+")


@struct
class BrokerFeature:
    """A feature and the range of levels that the broker supports."""

    name: str = wire("0+", map_key=True)
    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@message(api_key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """Record a broker's registration; it replaces an earlier one of the same broker.

    v1 adds the controlled shutdown, v2 a flag of the ZooKeeper migration, v3 the log directories,
    v4 the ones closed for new replicas.
    """

    broker_id: i32 = wire("0+")
    is_migrating_zk_broker: bool = wire("2+", default=False)
    incarnation_id: Uuid = wire("0+")
    broker_epoch: i64 = wire("0+")
    endpoints: tuple[BrokerEndpoint, ...] = wire("0+")
    features: tuple[BrokerFeature, ...] = wire("0+")
    rack: str | None = wire("0+")
    fenced: bool = wire("0+", default=True)
    in_controlled_shutdown: bool = wire("1+", default=False)
    log_dirs: tuple[Uuid, ...] = wire("3+", default=(), tag=0)
    cordoned_log_dirs: tuple[Uuid, ...] | None = wire("4+", default=None, tag=1)


@message(api_key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    """Record that a broker's registration is gone."""

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+")


@message(api_key=7, versions="0", flexible="0+")
class FenceBrokerRecord:
    """Record that a broker is fenced: the older form of BrokerRegistrationChangeRecord."""

    id: i32 = wire("0+")
    epoch: i64 = wire("0+")


@message(api_key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    """Record that a broker is no longer fenced: the older form of BrokerRegistrationChangeRecord."""

    id: i32 = wire("0+")
    epoch: i64 = wire("0+")


@message(api_key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """Record a change of a broker's registration; what is left out stays as it is.

    Fenced is 1 to fence, -1 to unfence, 0 for no change. v1 adds the controlled shutdown, v2 the log
    directories, v3 the ones closed for new replicas. The lowest version that carries the change is written.
    """

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+")
    fenced: i8 = wire("0+", default=0, tag=0)
    in_controlled_shutdown: i8 = wire("1+", default=0, tag=1)
    log_dirs: tuple[Uuid, ...] = wire("2+", default=(), tag=2)
    cordoned_log_dirs: tuple[Uuid, ...] | None = wire("3+", default=None, tag=3)
