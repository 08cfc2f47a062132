"""From JSON to the nodes of a schema.

References are looked up in the schema itself, in the schemas that were given for its references, and in the
published meta-schemas. Nothing is ever fetched.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urljoin

from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

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
    Nothing,
    Null,
    Number,
    Object,
    Reference,
    Rest,
    Text,
)
from ottla.schemas.json_text import compact, sorted_keys

_DRAFTS: Final = (("draft-04", DRAFT4), ("draft-06", DRAFT6), ("draft-07", DRAFT7))
_MODERN_DRAFTS: Final = (("2019-09", DRAFT201909), ("2020-12", DRAFT202012))
_ARRAY: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_MODERN_ARRAY: Final = ("prefixItems", "minContains", "maxContains", "unevaluatedItems")
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
_MODERN_OBJECT: Final = ("dependentRequired", "dependentSchemas", "unevaluatedProperties")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_TEXT: Final = ("minLength", "maxLength", "pattern", "format")
_CONDITIONAL: Final = ("if", "then", "else")
_COMBINED: Final = ("allOf", "anyOf", "oneOf")


def draft_of(schema: Any) -> Any:
    """Return the specification that a schema names, draft 7 if it names none that is known."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    for mark, draft in _DRAFTS + _MODERN_DRAFTS:
        if isinstance(named, str) and mark in named:
            return draft
    return DRAFT7


def load(schema: Any, resolved: Mapping[str, Any]) -> Node:
    """Load a schema and everything it refers to. Raises InvalidSchema."""
    loader = _Loader(schema, resolved)
    try:
        root = loader.root()
        loader.load_all()
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    return root


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


def _base(schema: Any) -> str:
    named = schema.get("$id") if isinstance(schema, dict) else None
    return named if isinstance(named, str) else ""


def _resource(schema: Any, draft: Any) -> Resource[Any]:
    # A reference may be of another draft than what refers to it. One that names none is of the same.
    named = draft_of(schema) if isinstance(schema, dict) and "$schema" in schema else draft
    resource: Resource[Any] = named.create_resource(schema)
    return resource


class _Loader:
    def __init__(self, schema: Any, resolved: Mapping[str, Any]) -> None:
        self._draft = draft_of(schema)
        self._is_modern = self._draft in (DRAFT201909, DRAFT202012)
        self._schema, registry = make_registry(schema, resolved)
        self._resolver = registry.resolver(base_uri=_base(self._schema))
        self._nodes: dict[int, Node] = {}
        self._pending: list[Reference] = []
        self._kept: list[Any] = []

    def root(self) -> Node:
        return self._node(self._schema, self._resolver)

    def load_all(self) -> None:
        """Follow all references, so that one that leads nowhere is found now."""
        while self._pending:
            self._pending.pop().target()

    def _node(self, schema: Any, resolver: Any) -> Node:
        if isinstance(schema, bool):
            return Anything("true") if schema else Nothing("false")
        if not isinstance(schema, dict):
            raise InvalidSchema(f"{compact(schema)} is not a schema: use an object, true or false")
        known = self._nodes.get(id(schema))
        if known is None:
            # What is in a node may refer back to the node, but only by a reference, which is loaded later.
            known = self._load(schema, resolver)
            self._nodes[id(schema)] = known
            self._kept.append(schema)
        return known

    def _load(self, schema: dict[str, Any], resolver: Any) -> Node:
        resolver = resolver.in_subresource(_resource(schema, self._draft))
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, resolver)
        parts = list(self._parts(dict(schema), resolver))
        if not parts:
            node: Node = Anything("{}")
        elif len(parts) == 1:
            node = parts[0]
        else:
            node = Combined(_key("allOf", schema), "allOf", parts)
        node.has_default = "default" in schema
        node.connect_type = schema.get("connect.type")
        return node

    def _reference(self, schema: dict[str, Any], resolver: Any) -> Reference:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        found: list[Node] = []

        def load() -> Node:
            if not found:
                found.append(self._follow(schema["$ref"], beside, resolver))
            return found[0]

        node = Reference(_key("$ref", schema), load, has_default="default" in schema)
        self._pending.append(node)
        return node

    def _follow(self, ref: str, beside: dict[str, Any], resolver: Any) -> Node:
        try:
            target = resolver.lookup(ref)
        except (Unresolvable, ValueError) as error:
            raise InvalidSchema(
                f"the reference {ref!r} leads nowhere: is it missing from references?"
            ) from error
        contents = target.contents
        if beside and isinstance(contents, dict):
            # Keywords beside a reference are added to what it leads to, and replace what is there.
            contents = {**contents, **beside}
        node = self._node(contents, target.resolver)
        return node.target() if isinstance(node, Reference) else node

    def _parts(self, schema: dict[str, Any], resolver: Any) -> Iterable[Node]:
        """Return a node for each kind of keyword. A keyword counts once: `schema` loses what is used."""
        if "enum" in schema:
            values = schema.pop("enum")
            yield Enumeration(_key("enum", values), frozenset(_value(value) for value in values))
        for criterion in _COMBINED:
            if criterion in schema:
                branches = schema.pop(criterion)
                nodes = [self._node(branch, resolver) for branch in branches]
                yield Combined(_key(criterion, branches), criterion, nodes)
        if "not" in schema:
            refused = schema.pop("not")
            yield Negation(_key("not", refused), self._node(refused, resolver))
        if "const" in schema and self._draft is not DRAFT4:
            constant = schema.pop("const")
            yield Constant(_key("const", constant), _value(constant))
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
                return _ARRAY + (_MODERN_ARRAY if self._is_modern else ())
            case "object":
                return _OBJECT + (_MODERN_OBJECT if self._is_modern else ())
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
        if _has(schema, _CONDITIONAL) and self._draft not in (DRAFT4, DRAFT6):
            yield Conditional(_key("if", {key: schema.get(key) for key in _CONDITIONAL}))

    def _rest(self, value: Any, resolver: Any) -> Rest:
        if isinstance(value, bool) or value is None:
            return Rest(is_permitted=value is not False)
        return Rest(schema=self._node(value, resolver))

    def _maybe(self, schema: dict[str, Any], keyword: str, resolver: Any) -> Node | None:
        return self._node(schema[keyword], resolver) if self._is_modern and keyword in schema else None

    def _object(self, schema: dict[str, Any], resolver: Any) -> Object:
        needed: dict[str, frozenset[str]] = {}
        applied: dict[str, Node] = {}
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            if keyword == "dependencies" or self._is_modern:
                for name, value in schema.get(keyword, {}).items():
                    if isinstance(value, list):
                        needed[name] = frozenset(value)
                    else:
                        applied[name] = self._node(value, resolver)
        patterns = schema.get("patternProperties", {})
        return Object(
            _key("object", _only(schema, self._keywords("object"))),
            properties={
                name: self._node(value, resolver) for name, value in schema.get("properties", {}).items()
            },
            required=frozenset(schema.get("required", ())),
            patterns=[(pattern, self._node(value, resolver)) for pattern, value in patterns.items()],
            additional=self._rest(schema.get("additionalProperties"), resolver),
            unevaluated=self._maybe(schema, "unevaluatedProperties", resolver),
            min_properties=schema.get("minProperties"),
            max_properties=schema.get("maxProperties"),
            property_dependencies=needed,
            schema_dependencies=applied,
        )

    def _array(self, schema: dict[str, Any], resolver: Any) -> Array:
        items = schema.get("items")
        rest = schema.get("additionalItems")
        if self._is_modern and "prefixItems" in schema:
            items, rest = schema["prefixItems"], schema.get("items")
        is_tuple = isinstance(items, list)
        return Array(
            _key("array", _only(schema, self._keywords("array"))),
            all_items=None if is_tuple or items is None else self._node(items, resolver),
            items=[self._node(item, resolver) for item in items or ()] if is_tuple else [],
            additional=self._rest(rest, resolver) if is_tuple else Rest(),
            unevaluated=self._maybe(schema, "unevaluatedItems", resolver),
            min_items=schema.get("minItems"),
            max_items=schema.get("maxItems"),
            is_unique=bool(schema.get("uniqueItems", False)),
            min_contains=schema.get("minContains"),
            max_contains=schema.get("maxContains"),
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


def _with_defs(schema: Any) -> Any:
    """Return the schema with its `definitions` also under `$defs`, where references may look for them."""
    if not isinstance(schema, dict) or not isinstance(schema.get("definitions"), dict):
        return schema
    there = schema.get("$defs", {})
    return {**schema, "$defs": {**schema["definitions"], **there}} if isinstance(there, dict) else schema


def _has(schema: dict[str, Any], keywords: Iterable[str]) -> bool:
    return any(keyword in schema for keyword in keywords)


def _only(schema: dict[str, Any], keywords: Iterable[str]) -> dict[str, Any]:
    return {keyword: schema[keyword] for keyword in keywords if keyword in schema}


def _key(kind: str, value: Any) -> str:
    return f"{kind}:{compact(sorted_keys(value))}"


def _value(value: Any) -> str:
    return compact(sorted_keys(value))
