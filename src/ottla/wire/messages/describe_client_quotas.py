"""DescribeClientQuotas (API key 48): quotas of users, clients and addresses, listed by a filter."""

from ottla.wire.declare import f64, i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class ComponentData:
    """What one part of the entity must be: an exact name, the default, or any."""

    entity_type: str = wire("0+")
    match_type: i8 = wire("0+")
    match: str | None = wire("0+")


@message(api_key=48, versions="0-1", flexible="1+", listeners=("broker",))
class DescribeClientQuotasRequest:
    """Ask for the quotas of the entities that match a filter.

    A strict filter matches only entities that have no other part than the ones named.
    """

    components: tuple[ComponentData, ...] = wire("0+")
    strict: bool = wire("0+")


@struct
class EntityData:
    """One part of a quota entity, such as a user; a null name means the default entity."""

    entity_type: str = wire("0+")
    entity_name: str | None = wire("0+")


@struct
class ValueData:
    """One quota and its value."""

    key: str = wire("0+")
    value: f64 = wire("0+")


@struct
class EntryData:
    """An entity and its quotas."""

    entity: tuple[EntityData, ...] = wire("0+")
    values: tuple[ValueData, ...] = wire("0+")


@message(api_key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """List the entities that match, with their quotas; null when the request failed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    entries: tuple[EntryData, ...] | None = wire("0+")
