"""Metadata records of client quotas."""

from ottla.wire.declare import f64, message, struct, wire


@struct
class EntityData:
    """One part of a quota entity, such as a user; a null name means the default entity."""

    entity_type: str = wire("0+")
    entity_name: str | None = wire("0+")


@message(api_key=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    """Record one quota of a user, a client id or an address, or that it is gone."""

    entity: tuple[EntityData, ...] = wire("0+")
    key: str = wire("0+")
    value: f64 = wire("0+")
    remove: bool = wire("0+")
