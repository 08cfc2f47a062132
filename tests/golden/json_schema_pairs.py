"""Random pairs of JSON Schemas: a schema, and what somebody made of it later."""

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

DRAFTS: Final = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_MODERN: Final = DRAFTS[3:]
_DEPTH_MAX: Final = 3
_SIMPLE: Final = ("string", "integer", "number", "boolean", "null")
_NAMES: Final = "abcdef"
_PATTERNS: Final = ("^[ab]", "^c", "[def]$", "x")
_VALUES: Final[tuple[Any, ...]] = ("A", "B", "C", 1, 2.5, None, True, {"k": 1}, ["A"])
_LIMITS: Final = {
    "string": (("minLength", 1, 3), ("maxLength", 4, 6)),
    "number": (
        ("minimum", 1, 3),
        ("maximum", 7, 9),
        ("exclusiveMinimum", 0, 2),
        ("exclusiveMaximum", 10, 12),
        ("multipleOf", 1, 6),
    ),
    "array": (("minItems", 1, 2), ("maxItems", 3, 5)),
    "object": (("minProperties", 1, 2), ("maxProperties", 3, 5)),
}
_LIMITS_OF: Final = {**_LIMITS, "integer": _LIMITS["number"]}


class Schemas:
    """Makes schemas and changes them. Names and values are few, so that they meet."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._draft: str | None = None
        self._defined: list[str] = []
        self._bucket = "definitions"

    def pair(self) -> tuple[Any, Any]:
        """Return a schema and a changed one. Now and then the two have nothing to do with each other."""
        self._draft = self._random.choice((None, *DRAFTS))
        first = self._root()
        if self._chance(0.06):
            return first, self._root()
        second = copy.deepcopy(first)
        for _ in range(self._random.randint(1, 2)):
            second = self._changed(second)
        if self._chance(0.04) and self._draft != DRAFTS[0]:
            second["$schema"] = self._random.choice(DRAFTS[1:])
        return first, second

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    @property
    def _is_modern(self) -> bool:
        return self._draft in _MODERN

    def _root(self) -> dict[str, Any]:
        self._defined = self._random.sample(("D", "E"), self._random.choice((0, 0, 1, 2)))
        self._bucket = self._random.choice(("$defs", "definitions")) if self._is_modern else "definitions"
        schema = self._schema(0)
        root: dict[str, Any] = schema if isinstance(schema, dict) else {"not": schema}
        if self._draft is not None:
            root = {"$schema": self._draft, **root}
        if self._defined:
            root[self._bucket] = {name: self._schema(1) for name in self._defined}
        return root

    def _schema(self, depth: int) -> Any:
        random = self._random
        makers: list[Callable[[int], Any]] = [self._simple]
        if depth < _DEPTH_MAX:
            makers += [self._object] * 4 + [self._array] * 2 + [self._combined] * 2
            makers += [self._negation, self._mixed, self._several_types]
        makers += [self._enumeration, self._constant]
        schema = random.choice(makers)(depth)
        if depth and self._defined and self._chance(0.1):
            return {"$ref": f"#/{self._bucket}/{random.choice(self._defined)}"}
        if depth and self._chance(0.05):
            return {} if self._draft == DRAFTS[0] else random.choice(({}, True, False))
        if isinstance(schema, dict) and self._chance(0.15):
            schema["default"] = random.choice(_VALUES)
        if isinstance(schema, dict) and self._chance(0.1):
            schema[random.choice(("title", "description"))] = random.choice("TU")
        return schema

    def _simple(self, depth: int) -> Any:
        return self._typed(self._random.choice(_SIMPLE))

    def _typed(self, kind: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": kind}
        for _ in range(self._random.choice((0, 0, 1, 2))):
            self._limit(schema, kind)
        return schema

    def _limit(self, schema: dict[str, Any], kind: str) -> None:
        """Set a limit of a kind, or take it away."""
        random = self._random
        choices: list[tuple[str, Any]] = [
            (name, random.randint(low, high)) for name, low, high in _LIMITS_OF.get(kind, ())
        ]
        if kind == "string":
            choices += [("pattern", random.choice(_PATTERNS)), ("format", random.choice(("date", "uri")))]
        if kind == "array":
            choices += [("uniqueItems", random.choice((True, False)))]
        if self._draft == DRAFTS[0]:
            choices = [
                (name, random.choice((True, False)) if name.startswith("exclusive") else value)
                for name, value in choices
            ]
        if not choices:
            return
        name, value = random.choice(choices)
        if name in schema and self._chance(0.4):
            del schema[name]
        else:
            schema[name] = value
        if self._draft == DRAFTS[0]:
            # There the exclusive limits are true or false, and need what they are about.
            for limit in ("Minimum", "Maximum"):
                if f"exclusive{limit}" in schema:
                    schema.setdefault(limit.lower(), random.randint(0, 9))

    def _object(self, depth: int) -> Any:
        random = self._random
        schema: dict[str, Any] = {"type": "object"} if self._chance(0.8) else {}
        names = random.sample(_NAMES, random.randint(0, 3))
        schema["properties"] = {name: self._schema(depth + 1) for name in names}
        if self._chance(0.3):
            self._rest(schema, "additionalProperties", depth)
        if self._chance(0.2):
            schema["required"] = random.sample(_NAMES, random.randint(1, 2))
        if self._chance(0.15):
            schema["patternProperties"] = {random.choice(_PATTERNS): self._schema(depth + 1)}
        if self._chance(0.12):
            self._dependencies(schema, depth)
        if self._chance(0.1):
            self._limit(schema, "object")
        if self._is_modern and self._chance(0.15):
            self._rest(schema, "unevaluatedProperties", depth)
        if self._chance(0.03) and self._draft != DRAFTS[0]:
            schema["propertyNames"] = {"pattern": random.choice(_PATTERNS)}
        return schema

    def _rest(self, schema: dict[str, Any], name: str, depth: int) -> None:
        random = self._random
        schema[name] = random.choice((True, False, False, self._schema(depth + 1)))

    def _dependencies(self, schema: dict[str, Any], depth: int) -> None:
        random = self._random
        name, needed = random.choice(_NAMES), random.sample(_NAMES, random.randint(1, 2))
        is_list = self._chance(0.5)
        if self._is_modern and self._chance(0.8):
            keyword = "dependentRequired" if is_list else "dependentSchemas"
        else:
            keyword = "dependencies"
        there = schema.setdefault(keyword, {})
        if there and self._chance(0.3):
            there.popitem()
        else:
            there[name] = needed if is_list else self._schema(depth + 1)

    def _array(self, depth: int) -> Any:
        random = self._random
        schema: dict[str, Any] = {"type": "array"} if self._chance(0.8) else {}
        kind = random.choice(("all", "tuple", "none", "all", "tuple"))
        if self._draft == DRAFTS[3]:
            # Confluent's registry refuses tuples of this draft.
            kind = "all"
        if kind == "all":
            schema["items"] = self._schema(depth + 1)
        elif kind == "tuple":
            items = [self._schema(depth + 1) for _ in range(random.randint(1, 3))]
            is_new = self._draft == DRAFTS[4]
            schema["prefixItems" if is_new else "items"] = items
            if self._chance(0.5):
                self._rest(schema, "items" if is_new else "additionalItems", depth)
        for _ in range(random.choice((0, 0, 1, 2))):
            self._limit(schema, "array")
        if self._draft != DRAFTS[0] and self._chance(0.1):
            schema["contains"] = self._schema(depth + 1)
            if self._is_modern and self._chance(0.5):
                schema[random.choice(("minContains", "maxContains"))] = random.randint(1, 3)
        if self._is_modern and self._chance(0.1):
            self._rest(schema, "unevaluatedItems", depth)
        if not schema:
            schema["maxItems"] = 3
        return schema

    def _combined(self, depth: int) -> Any:
        random = self._random
        branches = [self._schema(depth + 1) for _ in range(random.randint(1, 3))]
        schema: dict[str, Any] = {random.choice(("oneOf", "anyOf", "allOf")): branches}
        if self._chance(0.15):
            schema |= self._typed(random.choice(_SIMPLE))
        return schema

    def _negation(self, depth: int) -> Any:
        return {"not": self._schema(depth + 1)}

    def _mixed(self, depth: int) -> Any:
        """Keywords of several kinds, with or without a type."""
        schema: dict[str, Any] = {}
        for kind in self._random.sample(("string", "number", "array", "object"), 2):
            self._limit(schema, kind)
        if self._chance(0.3):
            schema["enum"] = self._random.sample(_VALUES, 2)
        if self._chance(0.3) and self._draft not in DRAFTS[:2]:
            schema |= {"if": self._simple(0), "then": self._simple(0)}
        return schema

    def _several_types(self, depth: int) -> Any:
        kinds = self._random.sample((*_SIMPLE, "object", "array"), self._random.randint(1, 3))
        schema: dict[str, Any] = {"type": kinds}
        for kind in kinds[:1] if self._is_modern else kinds:
            # There Confluent's verdict on keywords of several kinds beside a list of types depends on how it
            # happens to order the keywords.
            if self._chance(0.4):
                self._limit(schema, kind)
        return schema

    def _enumeration(self, depth: int) -> Any:
        values = self._random.sample(_VALUES, self._random.randint(1, 3))
        schema: dict[str, Any] = {"enum": values}
        if self._chance(0.4):
            schema["type"] = "string"
        return schema

    def _constant(self, depth: int) -> Any:
        # Confluent's comparison fails with null here.
        return {"const": self._random.choice([value for value in _VALUES if value is not None])}

    def _changed(self, root: Any) -> Any:
        """Change one place of a schema."""
        parent, key, chosen = self._random.choice(list(_places(root, None, None)))
        new = self._mutated(copy.deepcopy(chosen))
        if parent is None:
            return new if isinstance(new, dict) else {"not": new}
        parent[key] = new
        return root

    def _mutated(self, schema: Any) -> Any:
        random = self._random
        if not isinstance(schema, dict) or self._chance(0.12):
            return self._schema(2)
        changes: list[Callable[[dict[str, Any]], Any]] = [self._wrapped, self._retyped]
        if "properties" in schema:
            changes += [self._change_properties] * 4 + [self._change_required] * 2
            changes += [self._change_rest("additionalProperties")] * 2
            changes += [lambda schema: self._dependencies(schema, 2)]
            if self._is_modern:
                changes.append(self._change_rest("unevaluatedProperties"))
        for keyword in ("oneOf", "anyOf", "allOf", "prefixItems", "enum"):
            if keyword in schema:
                changes += [self._change_list(keyword)] * 4
        for keyword in ("oneOf", "anyOf", "allOf"):
            if keyword in schema:
                changes.append(self._change_criterion(keyword))
        if isinstance(schema.get("items"), list):
            changes += [self._change_list("items")] * 3 + [self._change_rest("additionalItems")] * 2
        if "patternProperties" in schema:
            changes += [self._change_patterns] * 2
        kinds = schema.get("type", random.choice(tuple(_LIMITS)))
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not (self._is_modern and len(kinds) > 1):
            changes += [lambda schema: self._limit(schema, random.choice(kinds))] * 3
        changed = random.choice(changes)(schema)
        return schema if changed is None else changed

    def _wrapped(self, schema: dict[str, Any]) -> Any:
        """Put a schema among the branches of a combined one, or take one out of it."""
        for criterion in ("oneOf", "anyOf", "allOf"):
            if schema.get(criterion) and self._chance(0.5):
                return self._random.choice(schema[criterion])
        branches = [schema] + [self._schema(2) for _ in range(self._random.randint(0, 2))]
        self._random.shuffle(branches)
        return {self._random.choice(("oneOf", "anyOf", "allOf")): branches}

    def _retyped(self, schema: dict[str, Any]) -> Any:
        random = self._random
        kind = schema.get("type")
        if kind in ("integer", "number") and self._chance(0.7):
            schema["type"] = "number" if kind == "integer" else "integer"
        elif isinstance(kind, str) and self._chance(0.6):
            others = [other for other in (*_SIMPLE, "object") if other != kind]
            schema["type"] = [kind, *random.sample(others, random.randint(0, 2))]
        elif isinstance(kind, list):
            schema["type"] = random.choice((kind[0], kind[1:] or kind[0], [*kind, "array"][-3:]))
            if isinstance(schema["type"], list):
                schema["type"] = list(dict.fromkeys(schema["type"]))
        else:
            schema["type"] = random.choice(_SIMPLE)

    def _change_properties(self, schema: dict[str, Any]) -> None:
        random, there = self._random, schema["properties"]
        free = [name for name in _NAMES if name not in there]
        if there and (self._chance(0.5) or not free):
            there.pop(random.choice(list(there)))
        else:
            there[random.choice(free)] = self._schema(2)

    def _change_required(self, schema: dict[str, Any]) -> None:
        there = set(schema.get("required", ()))
        names = list(schema["properties"]) or list(_NAMES)
        there ^= {self._random.choice(names)}
        schema["required"] = sorted(there)
        if not there:
            del schema["required"]

    def _change_rest(self, keyword: str) -> Callable[[dict[str, Any]], None]:
        def change(schema: dict[str, Any]) -> None:
            if keyword in schema and self._chance(0.4):
                del schema[keyword]
            else:
                self._rest(schema, keyword, 2)

        return change

    def _change_list(self, keyword: str) -> Callable[[dict[str, Any]], None]:
        def change(schema: dict[str, Any]) -> None:
            there = schema[keyword]
            if self._chance(0.2):
                self._random.shuffle(there)
            elif len(there) > 1 and self._chance(0.5):
                there.pop(self._random.randrange(len(there)))
            elif keyword == "enum":
                there += [value for value in self._random.sample(_VALUES, 1) if value not in there]
            else:
                there.append(self._schema(2))

        return change

    def _change_criterion(self, keyword: str) -> Callable[[dict[str, Any]], None]:
        def change(schema: dict[str, Any]) -> None:
            schema[self._random.choice(("oneOf", "anyOf", "allOf"))] = schema.pop(keyword)

        return change

    def _change_patterns(self, schema: dict[str, Any]) -> None:
        there = schema["patternProperties"]
        if self._chance(0.5):
            schema["patternProperties"] = {self._random.choice(_PATTERNS): next(iter(there.values()))}
        else:
            del schema["patternProperties"]


def _places(schema: Any, parent: Any, key: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Walk a schema: each schema in it with where it is."""
    yield parent, key, schema
    if not isinstance(schema, dict):
        return
    for keyword in ("not", "items", "additionalProperties", "additionalItems", "unevaluatedProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _places(schema[keyword], schema, keyword)
    for keyword in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        for name, inner in schema.get(keyword, {}).items():
            yield from _places(inner, schema[keyword], name)
    for keyword in ("oneOf", "anyOf", "allOf", "prefixItems", "items"):
        if isinstance(schema.get(keyword), list):
            for place, inner in enumerate(schema[keyword]):
                yield from _places(inner, schema[keyword], place)
