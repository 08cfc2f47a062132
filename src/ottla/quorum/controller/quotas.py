"""Client quotas: altered by decision, described from an image."""

import math
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from ottla.metadata.configs.quota import QuotaConfig
from ottla.metadata.configs.values import INT_MAX, LONG_MAX
from ottla.metadata.delta import quota_entity
from ottla.metadata.image import MetadataImage, QuotaEntity
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.wire.config_kinds import ConfigType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_client_quotas, describe_client_quotas
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
    QuotaAlterationResult,
    QuotaOperation,
)
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
    ValueData,
)
from ottla.wire.metadata_records.quotas import ClientQuotaRecord, EntityData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_TYPES: Final = (USER, CLIENT_ID, IP)

_IP_KEYS: Final = frozenset(("connection_creation_rate",))
_LARGEST: Final = {ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}
_FRACTION_MAX: Final = 1e-6
_ORDER: Final = (
    "connection_creation_rate",
    "consumer_byte_rate",
    "controller_mutation_rate",
    "request_percentage",
    "producer_byte_rate",
)
"""How Kafka sorts up to three quotas of an entity that were set together: as its hash table has them.

Clients should not rely on it, but the tests of some compare whole answers.
"""
_ORDER_HOLDS_MAX: Final = 3
_ORDER_OF_MORE: Final = (
    "connection_creation_rate",
    "producer_byte_rate",
    "consumer_byte_rate",
    "controller_mutation_rate",
    "request_percentage",
)
"""The same when there are more: the table has grown."""
_MATCH_EXACT: Final = 0
_MATCH_DEFAULT: Final = 1
_MATCH_ANY: Final = 2
_NEED_NO_NAME: Final = {_MATCH_DEFAULT: "MATCH_TYPE_DEFAULT", _MATCH_ANY: "MATCH_TYPE_SPECIFIED"}


def refuse_alter_client_quotas(ask: AlterClientQuotasRequest, refusal: Refusal) -> AlterClientQuotasResponse:
    """Refuse the changes of all entities."""
    entities = dict.fromkeys(map(_entity_of, ask.entries))
    return AlterClientQuotasResponse(entries=tuple(_result(entity, refusal) for entity in entities))


@decides(AlterClientQuotasRequest, refuse=refuse_alter_client_quotas)
def decide_alter_client_quotas(
    view: ControllerView, ask: AlterClientQuotasRequest
) -> Decision[AlterClientQuotasResponse]:
    """Set and remove quotas. Each entity is decided on its own."""
    outcomes: dict[QuotaEntity, Refusal | None] = {}
    records: list[Any] = []
    for entry in ask.entries:
        entity = _entity_of(entry)
        try:
            if entity in outcomes:
                raise _invalid(f"The entity {dict(entity)} is given more than once; the first one counts.")
            new_records = _alter_entity(view, entity, entry.ops)
            check_record_count(len(records) + len(new_records))
        except Refusal as refusal:
            outcomes[entity] = refusal
        else:
            outcomes[entity] = None
            records += new_records
    reply = AlterClientQuotasResponse(
        entries=tuple(_result(entity, refusal) for entity, refusal in outcomes.items())
    )
    return Decision(reply) if ask.validate_only else Decision(reply, records)


def _entity_of(entry: QuotaAlteration) -> QuotaEntity:
    return quota_entity({part.entity_type: part.entity_name for part in entry.entity})


def _result(entity: QuotaEntity, refusal: Refusal | None) -> QuotaAlterationResult:
    return QuotaAlterationResult(
        error_code=ErrorCode.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
        entity=tuple(
            alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
        ),
    )


def _alter_entity(
    view: ControllerView, entity: QuotaEntity, operations: Sequence[QuotaOperation]
) -> list[ClientQuotaRecord]:
    asked = {operation.key: operation for operation in operations}
    if len(asked) < len(operations):
        raise _invalid(f"A quota of the entity {dict(entity)} is given more than once.")
    _check_entity(entity)
    current = view.image.quotas.get(entity, {})
    keys = _IP_KEYS if dict(entity).keys() == {IP} else QuotaConfig.keys.keys() - _IP_KEYS
    parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    records = []
    for key, operation in asked.items():
        if operation.remove:
            if key in current:
                records.append(ClientQuotaRecord(entity=parts, key=key, value=0.0, remove=True))
            continue
        if key not in keys:
            raise _invalid(f"Invalid configuration key {key}")
        _check_value(key, operation.value)
        if current.get(key) != operation.value:
            records.append(ClientQuotaRecord(entity=parts, key=key, value=operation.value, remove=False))
    return records


def _check_entity(entity: QuotaEntity) -> None:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    names = dict(entity)
    for kind, name in entity:
        if kind not in _TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP in names:
        if len(names) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
            )
        address = names[IP]
        if address is not None and not _is_address(address):
            raise _invalid(f"{address} is not a valid IP or resolvable host.")


def _is_address(text: str) -> bool:
    """Say whether a text is an address.

    Deviation: Kafka also takes the name of a host, if it resolves. Here neither who decides nor who accepts
    connections asks a name server, so a quota on a name would never hold.
    """
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(key: str, value: float) -> None:
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = _LARGEST.get(QuotaConfig.keys[key].type)
    if largest is None:
        return
    if value > largest:
        kind = "an INT" if largest < 2**32 else "a LONG"
        raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if abs(math.fmod(value, 1)) > _FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def describe_quotas(image: MetadataImage, ask: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Return the quotas of all entities that match a filter."""
    try:
        matches = _filter(ask)
    except Refusal as refusal:
        return DescribeClientQuotasResponse(
            error_code=refusal.error_code, error_message=refusal.message, entries=None
        )
    entries = tuple(
        EntryData(
            entity=tuple(
                describe_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
            ),
            values=tuple(ValueData(key=key, value=quotas[key]) for key in _in_order_of_kafka(quotas)),
        )
        for entity, quotas in image.quotas.items()
        if matches(dict(entity))
    )
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def _in_order_of_kafka(quotas: Mapping[str, float]) -> list[str]:
    order = _ORDER if len(quotas) <= _ORDER_HOLDS_MAX else _ORDER_OF_MORE
    # A metadata log that a newer Kafka has written may have quotas that nobody here knows.
    return sorted(quotas, key=lambda key: order.index(key) if key in order else len(order))


def _filter(ask: DescribeClientQuotasRequest) -> Callable[[dict[str, str | None]], bool]:
    exact: dict[str, str | None] = {}
    present: set[str] = set()
    for part in ask.components:
        kind = part.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in exact or kind in present:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _TYPES:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if part.match_type == _MATCH_EXACT and part.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if part.match_type in _NEED_NO_NAME and part.match is not None:
            raise _invalid(
                f"Request specified {_NEED_NO_NAME[part.match_type]}, but also specified a match string."
            )
        if part.match_type in (_MATCH_EXACT, _MATCH_DEFAULT):
            exact[kind] = part.match
        elif part.match_type == _MATCH_ANY:
            present.add(kind)
        else:
            raise _invalid(f"Unknown match type {part.match_type}")
    wanted = exact.keys() | present
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )

    def matches(entity: dict[str, str | None]) -> bool:
        if ask.strict and entity.keys() != wanted:
            return False
        return wanted <= entity.keys() and all(entity[kind] == name for kind, name in exact.items())

    return matches
