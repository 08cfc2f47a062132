"""From JSON to the nodes of a schema of draft 2019-09 or 2020-12.

Each keyword is a node of its own, and nodes are joined one after the other: those of one kind become one, and
of others an `allOf` is made, which is *generated*. Confluent's registry puts the branches of a generated
`allOf` among those of the `allOf`, `anyOf` or `oneOf` around it, and so do we: verdicts depend on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.joining import join, joined_branches
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
    Nothing,
    Null,
    Number,
    Object,
    Rest,
    Text,
)
from ottla.schemas.json_schema.references import Loader, said_by, text_of

_KNOWN: Final = frozenset(
    (
        "$id",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$ref",
        "$defs",
        "$schema",
        "$vocabulary",
        "minLength",
        "maxLength",
        "allOf",
        "anyOf",
        "oneOf",
        "additionalProperties",
        "properties",
        "patternProperties",
        "title",
        "description",
        "readOnly",
        "writeOnly",
        "deprecated",
        "default",
        "enum",
        "const",
        "false",
        "true",
        "type",
        "not",
        "required",
        "maximum",
        "minimum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "multipleOf",
        "uniqueItems",
        "items",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependentRequired",
        "unevaluatedItems",
        "unevaluatedProperties",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "pattern",
        "format",
    )
)
_NUMBERS: Final = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
}
_TEXTS: Final = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_ARRAYS: Final = {"minItems": "min_items", "maxItems": "max_items", "uniqueItems": "is_unique"}
_OBJECTS: Final = {"minProperties": "min_properties", "maxProperties": "max_properties"}
_LIMITS: Final[tuple[tuple[type[Node], dict[str, str]], ...]] = (
    (Number, _NUMBERS),
    (Text, _TEXTS),
    (Array, _ARRAYS),
    (Object, _OBJECTS),
)
# They are known, and say nothing that is compared.
_SILENT: Final = frozenset(("format", "readOnly", "writeOnly"))


class ModernLoader(Loader):
    """Loads schemas of these drafts."""

    def load(self, schema: dict[str, Any], resolver: Any) -> Node:
        """Load a schema with keywords."""
        node: Node = Combined("", "allOf", [], is_generated=True)
        for place, part in enumerate(self._parts(schema, resolver)):
            node = part if place == 0 else join(node, part)
        if isinstance(node, Combined) and node.criterion == "allOf" and node.is_generated:
            if not node.branches:
                node = Anything("")
            elif len(node.branches) == 1:
                node = node.branches[0]
        if isinstance(node, Array | Object) and self._has_unknown(schema):
            # As in Confluent's registry, where unknown keywords take the place of these.
            node = _without_the_unevaluated(node)
        node.key = said_by(schema)
        node.connect_type = schema.get("connect.type")
        node.has_default = schema.get("default") is not None
        return node

    def _has_unknown(self, schema: dict[str, Any]) -> bool:
        return bool(schema.get("$defs")) or any(keyword not in _KNOWN for keyword in schema)

    def _parts(self, schema: dict[str, Any], resolver: Any) -> Iterator[Node]:
        """Return a node for each keyword, in the order of Confluent's registry."""
        any_keyword = False
        for keyword, value in schema.items():
            part = self._part(keyword, value, schema, resolver)
            if part is not None:
                any_keyword = True
                part.key = part.key or said_by({keyword: value})
                yield part
        if not any_keyword:
            yield _nothing_said()
        for name, value in schema.get("properties", {}).items():
            yield Object(text_of({"properties": {name: value}}), {name: self.node(value, resolver)})
        for pattern, value in schema.get("patternProperties", {}).items():
            node = self.node(value, resolver)
            yield Object(text_of({"patternProperties": {pattern: value}}), patterns=[(pattern, node)])
        for keyword, kind in (("unevaluatedItems", Array), ("unevaluatedProperties", Object)):
            if keyword in schema:
                node = self.node(schema[keyword], resolver)
                yield kind(text_of({keyword: schema[keyword]}), unevaluated=node)

    def _part(self, keyword: str, value: Any, schema: dict[str, Any], resolver: Any) -> Node | None:
        for kind, names in _LIMITS:
            if keyword in names:
                return kind("", **{names[keyword]: value})
        if keyword in _SILENT:
            return _nothing_said()
        match keyword:
            case "$ref":
                return self.reference(schema, resolver)
            case "type":
                return _typed(value)
            case "enum":
                return Enumeration("", frozenset(text_of(one) for one in value))
            case "const":
                return Constant("", text_of(value))
            case "not":
                return Negation("", self.node(value, resolver))
            case "if":
                return Conditional("")
            case "allOf" | "anyOf" | "oneOf":
                branches = [self.node(branch, resolver) for branch in value]
                return Combined("", keyword, joined_branches(branches))
        return self._of_object(keyword, value, resolver) or self._of_array(keyword, value, schema, resolver)

    def _of_object(self, keyword: str, value: Any, resolver: Any) -> Node | None:
        match keyword:
            case "required":
                return Object("", required=frozenset(value))
            case "additionalProperties":
                return Object("", additional=_rest(self.node(value, resolver)))
            case "dependentRequired":
                needed = {name: frozenset(names) for name, names in value.items() if names}
                return Object("", property_dependencies=needed)
            case "dependentSchemas":
                schemas = {name: self.node(one, resolver) for name, one in value.items()}
                return Object("", schema_dependencies=schemas)
            case "propertyNames":
                return Object("")
        return None

    def _of_array(self, keyword: str, value: Any, schema: dict[str, Any], resolver: Any) -> Node | None:
        match keyword:
            case "prefixItems":
                return Array("", items=[self.node(item, resolver) for item in value])
            case "items" if isinstance(value, list):
                # Only 2019-09 has this. Confluent's registry refuses it.
                rest = self.node(schema.get("additionalItems", True), resolver)
                return Array("", items=[self.node(item, resolver) for item in value], additional=_rest(rest))
            case "items":
                items = self.node(value, resolver)
                if schema.get("prefixItems") or value in (True, False):
                    return Array("", additional=_rest(items))
                return Array("", all_items=items)
            case "contains":
                return Array(
                    "", min_contains=schema.get("minContains", 1), max_contains=schema.get("maxContains")
                )
        return None


def _nothing_said() -> Combined:
    return Combined("", "allOf", [], is_generated=True)


def _rest(node: Node) -> Rest:
    if isinstance(node, Nothing):
        return Rest(is_permitted=False)
    return Rest(schema=None if isinstance(node, Anything) and node.key == "true" else node)


def _without_the_unevaluated(node: Array | Object) -> Array | Object:
    if isinstance(node, Array):
        return replace(node, unevaluated=None, min_contains=None, max_contains=None)
    return replace(node, unevaluated=None)


def _typed(kinds: str | Sequence[str]) -> Node:
    if isinstance(kinds, str):
        return _of_kind(kinds)
    return Combined("", "anyOf", [_of_kind(kind) for kind in kinds], is_generated=True)


def _of_kind(kind: str) -> Node:
    key = text_of({"type": kind})
    match kind:
        case "string":
            return Text(key)
        case "integer" | "number":
            return Number(key, is_integer=kind == "integer")
        case "boolean":
            return Boolean(key)
        case "null":
            return Null(key)
        case "array":
            return Array(key)
        case "object":
            return Object(key)
        case _:
            raise InvalidSchema(f"{kind!r} is not a type")
