"""Quotas: what a user, a client id or an address may use up."""

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, outcome_of
from ottla.client.errors import raise_for
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    QuotaAlteration,
    QuotaOperation,
)
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

Entity = frozenset[tuple[str, str | None]]
"""Whom a quota binds: pairs of a type (`user`, `client-id`, `ip`) and a name; None stands for the default."""


class _AnyName:
    def __repr__(self) -> str:
        return "ANY_NAME"


ANY_NAME: Final = _AnyName()
"""In `describe`: whatever the name, the default too."""


def entity(**names: str | None) -> Entity:
    """Write an entity: `entity(user="ann", client_id=None)` is ann, with any client id that has no quota."""
    return frozenset((kind.replace("_", "-"), name) for kind, name in names.items())


class Quotas:
    """The quotas of a cluster."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(
        self, match: Mapping[str, str | _AnyName | None] | None = None, *, strict: bool = False
    ) -> dict[Entity, dict[str, float]]:
        """Return quotas by entity; only those that match types and names, when given.

        With `strict` an entity that has other types as well does not match.
        """
        components = tuple(_component(kind, name) for kind, name in (match or {}).items())
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        answer = await self._routes.ask_any(request)
        raise_for(answer.error_code, "cannot describe quotas", answer.error_message)
        return {
            frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or ()
        }

    async def alter(
        self,
        whom: Entity,
        values: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas of one entity, or remove those that are None; others of it stay."""
        (await self.alter_many({whom: values}, validate_only=validate_only)).check()

    async def alter_many(
        self, changes: Mapping[Entity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Results[Entity, None]:
        """Change quotas of entities; None removes one."""
        request = AlterClientQuotasRequest(
            entries=tuple(_alteration(whom, values) for whom, values in changes.items()),
            validate_only=validate_only,
        )
        answer = await self._routes.ask_controller(
            request, lambda found: (entry.error_code for entry in found.entries), repeatable=True
        )
        return Results(
            {
                frozenset((part.entity_type, part.entity_name) for part in entry.entity): outcome_of(
                    entry.error_code, "cannot change a quota", entry.error_message, None
                )
                for entry in answer.entries
            }
        )


def _component(kind: str, name: str | _AnyName | None) -> ComponentData:
    if isinstance(name, _AnyName):
        return ComponentData(entity_type=kind, match_type=_ANY, match=None)
    return ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)


def _alteration(whom: Entity, values: Mapping[str, float | None]) -> QuotaAlteration:
    return QuotaAlteration(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(whom, key=repr)),
        ops=tuple(
            QuotaOperation(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in values.items()
        ),
    )
