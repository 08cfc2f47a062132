"""AlterClientQuotas (API key 49): quotas of users, clients and addresses are set or removed."""

from ottla.wire.declare import f64, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class EntityData:
    """One part of a quota entity, such as a user; a null name means the default entity."""

    entity_type: str = wire("0+")
    entity_name: str | None = wire("0+")


@struct
class QuotaOperation:
    """One quota key to set, or to remove."""

    key: str = wire("0+")
    value: f64 = wire("0+")
    remove: bool = wire("0+")


@struct
class QuotaAlteration:
    """One entity and what to change in its quotas."""

    entity: tuple[EntityData, ...] = wire("0+")
    ops: tuple[QuotaOperation, ...] = wire("0+")


@message(api_key=49, versions="0-1", flexible="1+", listeners=("broker", "controller"))
class AlterClientQuotasRequest:
    """Set or remove quotas of users, client ids and addresses, or only check the change."""

    entries: tuple[QuotaAlteration, ...] = wire("0+")
    validate_only: bool = wire("0+")


@struct
class QuotaAlterationResult:
    """What became of one entity's changes."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    entity: tuple[EntityData, ...] = wire("0+")


@message(api_key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """Say for each entity whether its quotas were changed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    entries: tuple[QuotaAlterationResult, ...] = wire("0+")
