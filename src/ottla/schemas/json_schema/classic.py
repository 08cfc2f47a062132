"""From JSON to the nodes of a schema of draft 4, 6 or 7.

A schema with keywords of several kinds is an `allOf` of them, and a list of types is an `anyOf`.
"""

from collections.abc import Iterable
from typing import Any, Final

from referencing.jsonschema import DRAFT4, DRAFT6

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.model import (
    Anything,
    Array,
    Boolean,
    Combined,
    Conditional,
    Constant,
    Enumeration,
    Negation,
    Node,
    Null,
    Number,
    Object,
    Rest,
    Text,
)
from ottla.schemas.json_schema.references import Loader, said_by, text_of

_ARRAY: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_OBJECT: Final = (
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
)
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_TEXT: Final = ("minLength", "maxLength", "pattern", "format")
_CONDITIONAL: Final = ("if", "then", "else")
_COMBINED: Final = ("allOf", "anyOf", "oneOf")


class ClassicLoader(Loader):
    """Loads schemas of these drafts."""

    def load(self, schema: dict[str, Any], resolver: Any) -> Node:
        """Load a schema with keywords."""
        if isinstance(schema.get("$ref"), str):
            # Keywords beside a reference are not looked at, but a default counts.
            node: Node = self.reference(schema, resolver)
        else:
            parts = list(self._parts(dict(schema), resolver))
            if not parts:
                node = Anything("")
            elif len(parts) == 1:
                node = parts[0]
            else:
                node = Combined("", "allOf", parts)
            node.connect_type = schema.get("connect.type")
        node.key = said_by(schema)
        node.has_default = "default" in schema
        return node

    def _parts(self, schema: dict[str, Any], resolver: Any) -> Iterable[Node]:
        """Return a node for each kind of keyword. A keyword counts once: `schema` loses what is used."""
        if "enum" in schema:
            values = schema.pop("enum")
            yield Enumeration(_key("enum", values), frozenset(text_of(value) for value in values))
        for criterion in _COMBINED:
            if criterion in schema:
                branches = schema.pop(criterion)
                nodes = [self.node(branch, resolver) for branch in branches]
                yield Combined(_key(criterion, branches), criterion, nodes)
        if "not" in schema:
            refused = schema.pop("not")
            yield Negation(_key("not", refused), self.node(refused, resolver))
        if "const" in schema and self.draft is not DRAFT4:
            constant = schema.pop("const")
            yield Constant(_key("const", constant), text_of(constant))
        if "type" in schema:
            yield self._typed(schema, resolver)
        yield from self._untyped(schema, resolver)

    def _typed(self, schema: dict[str, Any], resolver: Any) -> Node:
        kinds = schema.pop("type")
        if isinstance(kinds, str):
            node = self._of_kind(kinds, schema, resolver)
            self._drop(schema, (kinds,))
            return node
        nodes = [self._of_kind(kind, schema, resolver) for kind in kinds]
        key = _key("type", [kinds, schema])
        self._drop(schema, kinds)
        return Combined(key, "anyOf", nodes)

    def _of_kind(self, kind: str, schema: dict[str, Any], resolver: Any) -> Node:
        match kind:
            case "string":
                return _text(schema)
            case "integer" | "number":
                return _number(schema, is_integer=kind == "integer")
            case "boolean":
                return Boolean("boolean")
            case "null":
                return Null("null")
            case "array":
                return self._array(schema, resolver)
            case "object":
                return self._object(schema, resolver)
            case _:
                raise InvalidSchema(f"{kind!r} is not a type")

    def _drop(self, schema: dict[str, Any], kinds: Iterable[str]) -> None:
        for kind in kinds:
            for keyword in self._keywords(kind):
                schema.pop(keyword, None)

    def _keywords(self, kind: str) -> tuple[str, ...]:
        match kind:
            case "string":
                return _TEXT
            case "integer" | "number":
                return _NUMBER
            case "array":
                return _ARRAY
            case "object":
                return _OBJECT
            case _:
                return ()

    def _untyped(self, schema: dict[str, Any], resolver: Any) -> Iterable[Node]:
        """Return nodes for keywords that stand without the type they are about."""
        if _has(schema, self._keywords("array")):
            yield self._array(schema, resolver)
        if _has(schema, self._keywords("object")):
            yield self._object(schema, resolver)
        if _has(schema, _NUMBER):
            yield _number(schema, is_integer=False)
        if _has(schema, _TEXT):
            yield _text(schema)
        if _has(schema, _CONDITIONAL) and self.draft not in (DRAFT4, DRAFT6):
            yield Conditional(_key("if", {key: schema.get(key) for key in _CONDITIONAL}))

    def _rest(self, value: Any, resolver: Any) -> Rest:
        if isinstance(value, bool) or value is None:
            return Rest(is_permitted=value is not False)
        return Rest(schema=self.node(value, resolver))

    def _object(self, schema: dict[str, Any], resolver: Any) -> Object:
        dependencies = schema.get("dependencies", {})
        patterns = schema.get("patternProperties", {})
        return Object(
            _key("object", _only(schema, _OBJECT)),
            properties={
                name: self.node(value, resolver) for name, value in schema.get("properties", {}).items()
            },
            required=frozenset(schema.get("required", ())),
            patterns=[(pattern, self.node(value, resolver)) for pattern, value in patterns.items()],
            additional=self._rest(schema.get("additionalProperties"), resolver),
            min_properties=schema.get("minProperties"),
            max_properties=schema.get("maxProperties"),
            property_dependencies={
                name: frozenset(value) for name, value in dependencies.items() if isinstance(value, list)
            },
            schema_dependencies={
                name: self.node(value, resolver)
                for name, value in dependencies.items()
                if not isinstance(value, list)
            },
        )

    def _array(self, schema: dict[str, Any], resolver: Any) -> Array:
        items = schema.get("items")
        is_tuple = isinstance(items, list)
        additional = self._rest(schema.get("additionalItems"), resolver)
        if not is_tuple and items is not None:
            # All items have a schema, so there are no others that could be refused.
            additional.is_permitted = True
        return Array(
            _key("array", _only(schema, _ARRAY)),
            all_items=None if is_tuple or items is None else self.node(items, resolver),
            items=[self.node(item, resolver) for item in items or ()] if is_tuple else [],
            additional=additional,
            min_items=schema.get("minItems"),
            max_items=schema.get("maxItems"),
            is_unique=bool(schema.get("uniqueItems", False)),
        )


def _text(schema: dict[str, Any]) -> Text:
    return Text(
        _key("string", _only(schema, _TEXT)),
        schema.get("minLength"),
        schema.get("maxLength"),
        schema.get("pattern"),
    )


def _number(schema: dict[str, Any], *, is_integer: bool) -> Number:
    return Number(
        _key("integer" if is_integer else "number", _only(schema, _NUMBER)),
        minimum=_limit(schema.get("minimum")),
        maximum=_limit(schema.get("maximum")),
        exclusive_minimum=_limit(schema.get("exclusiveMinimum")),
        exclusive_maximum=_limit(schema.get("exclusiveMaximum")),
        multiple_of=_limit(schema.get("multipleOf")),
        is_integer=is_integer,
    )


def _limit(value: Any) -> Any:
    # In draft 4 the exclusive limits are true or false, and not compared.
    return None if isinstance(value, bool) else value


def _has(schema: dict[str, Any], keywords: Iterable[str]) -> bool:
    return any(keyword in schema for keyword in keywords)


def _only(schema: dict[str, Any], keywords: Iterable[str]) -> dict[str, Any]:
    return {keyword: schema[keyword] for keyword in keywords if keyword in schema}


def _key(kind: str, value: Any) -> str:
    return f"{kind}:{text_of(value)}"
