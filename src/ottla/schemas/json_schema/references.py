"""Where the references of a JSON Schema lead, and how a schema is loaded through them.

References are looked up in the schema itself, in the schemas that were given for its references, and in the
published meta-schemas. Nothing is ever fetched.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urljoin

import attrs
from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.model import Anything, Node, Nothing, Reference
from ottla.schemas.json_text import compact, sorted_keys

_DRAFTS: Final = (("draft-04", DRAFT4), ("draft-06", DRAFT6), ("draft-07", DRAFT7))
_MODERN_DRAFTS: Final = (("2019-09", DRAFT201909), ("2020-12", DRAFT202012))

_SAYS_NOTHING: Final = frozenset(
    (
        ("additionalProperties", "true"),
        ("additionalItems", "true"),
        ("uniqueItems", "false"),
        ("properties", "{}"),
    )
)


def draft_of(schema: Any) -> Any:
    """Return the specification that a schema names, draft 7 if it names none that is known."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    for mark, draft in _DRAFTS + _MODERN_DRAFTS:
        if isinstance(named, str) and mark in named:
            return draft
    return DRAFT7


def is_modern(draft: Any) -> bool:
    """Say whether a draft is 2019-09 or 2020-12."""
    return draft in (DRAFT201909, DRAFT202012)


def make_registry(schema: Any, resolved: Mapping[str, Any]) -> tuple[Any, Registry[Any]]:
    """Return a schema as references see it, and all that they can lead to."""
    from jsonschema_specifications import REGISTRY

    draft = draft_of(schema)
    schema = _with_defs(schema)
    base = _base(schema)
    resources: list[tuple[str, Resource[Any]]] = [(base, _resource(schema, draft))]
    for name, other in resolved.items():
        resource = _resource(_with_defs(other), draft)
        resources += [(uri, resource) for uri in {name, urljoin(base, name)}]
    published: Registry[Any] = REGISTRY
    return schema, published.with_resources(resources).crawl()


def text_of(value: Any) -> str:
    """Return a value as text that is equal for equal values."""
    return compact(sorted_keys(value))


def said_by(schema: dict[str, Any]) -> str:
    """Return a schema as text, without keywords that say nothing."""
    said = {
        keyword: value for keyword, value in schema.items() if (keyword, text_of(value)) not in _SAYS_NOTHING
    }
    return text_of(said)


class Loader(ABC):
    """Loads a schema and what it refers to."""

    def __init__(self, schema: Any, resolved: Mapping[str, Any]) -> None:
        self.draft = draft_of(schema)
        self._schema, registry = make_registry(schema, resolved)
        self._resolver = registry.resolver(base_uri=_base(self._schema))
        self._nodes: dict[int, Node] = {}
        self._pending: list[Reference] = []
        self._kept: list[Any] = []

    def root(self) -> Node:
        """Load the schema itself."""
        return self.node(self._schema, self._resolver)

    def load_all(self) -> None:
        """Follow all references, so that one that leads nowhere is found now."""
        while self._pending:
            self._pending.pop().target()

    def node(self, schema: Any, resolver: Any) -> Node:
        """Load a schema that is part of another one."""
        if isinstance(schema, bool):
            return Anything("true") if schema else Nothing("false")
        if not isinstance(schema, dict):
            raise InvalidSchema(f"{compact(schema)} is not a schema: use an object, true or false")
        known = self._nodes.get(id(schema))
        if known is None:
            # What is in a node may refer back to the node, but only by a reference, which is loaded later.
            known = self.load(schema, resolver.in_subresource(_resource(schema, self.draft)))
            self._nodes[id(schema)] = known
            self._kept.append(schema)
        return known

    def reference(self, schema: dict[str, Any], resolver: Any) -> Reference:
        """Return the `$ref` of a schema. It is followed later."""
        ref = schema["$ref"]
        found: list[Node] = []

        def load() -> Node:
            if not found:
                found.append(self._follow(ref, resolver))
            return found[0]

        node = Reference(f"$ref:{text_of(schema)}", load)
        self._pending.append(node)
        return node

    def _follow(self, ref: str, resolver: Any) -> Node:
        try:
            target = resolver.lookup(ref)
        except (Unresolvable, ValueError) as error:
            raise InvalidSchema(
                f"the reference {ref!r} leads nowhere: is it missing from references?"
            ) from error
        return self.node(target.contents, target.resolver)

    @abstractmethod
    def load(self, schema: dict[str, Any], resolver: Any) -> Node:
        """Load a schema with keywords."""


def _base(schema: Any) -> str:
    named = schema.get("$id") if isinstance(schema, dict) else None
    return named if isinstance(named, str) else ""


def _resource(schema: Any, draft: Any) -> Resource[Any]:
    # A reference may be of another draft than what refers to it. One that names none is of the same.
    named = draft_of(schema) if isinstance(schema, dict) and "$schema" in schema else draft
    resource: Resource[Any] = _PATIENT[named.name].create_resource(schema)
    return resource


def _with_defs(schema: Any) -> Any:
    """Return the schema with its `definitions` also under `$defs`, where references may look for them."""
    if not isinstance(schema, dict) or not isinstance(schema.get("definitions"), dict):
        return schema
    there = schema.get("$defs", {})
    return {**schema, "$defs": {**schema["definitions"], **there}} if isinstance(there, dict) else schema


def _patient(draft: Specification[Any]) -> Specification[Any]:
    """Return a draft that also finds schemas in `dependencies` that have both schemas and lists of names."""

    def subresources(contents: Any) -> Iterable[Any]:
        mixed = contents.get("dependencies") if isinstance(contents, dict) else None
        if isinstance(mixed, dict) and any(isinstance(value, list) for value in mixed.values()):
            schemas = {name: value for name, value in mixed.items() if not isinstance(value, list)}
            contents = {**contents, "dependencies": schemas}
        return draft.subresources_of(contents)

    evolved: Specification[Any] = attrs.evolve(draft, subresources_of=subresources)  # type: ignore[misc]
    return evolved


_PATIENT: Final = {draft.name: _patient(draft) for _, draft in _DRAFTS + _MODERN_DRAFTS}
