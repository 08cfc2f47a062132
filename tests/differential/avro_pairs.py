"""Random pairs of Avro schemas: a schema, and what somebody made of it later."""

import copy
from random import Random
from typing import Any, Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_DEFAULTS: Final = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 1.5,
    "double": 1e10,
    "bytes": "\u00ff",
    "string": "x",
}
_SYMBOLS: Final = ("A", "B", "C", "D")
_KINDS: Final = ("simple", "record", "record", "union", "array", "map", "enum", "fixed", "again")
_DEPTH_MAX: Final = 3


class Schemas:
    """Makes schemas and changes them. Names are few, so that they meet."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._defined: list[str] = []

    def pair(self) -> tuple[Any, Any]:
        """Return a schema and a changed one. Now and then the two have nothing to do with each other."""
        self._defined = []
        first = self._type(0)
        if self._random.random() < 0.1:
            self._defined = []
            return first, self._type(0)
        second = copy.deepcopy(first)
        for _ in range(self._random.randint(1, 3)):
            second = self._changed(second)
        return first, second

    def _type(self, depth: int) -> Any:
        random = self._random
        kind = random.choice(
            ("simple", "record", "record", "union", "array", "map", "enum", "fixed", "again")
        )
        if kind == "again" and self._defined and depth:
            return random.choice(self._defined)
        if depth >= _DEPTH_MAX or kind in ("simple", "again"):
            simple = random.choice(PRIMITIVES)
            return {"type": simple, "logicalType": "date"} if random.random() < 0.1 else simple
        match kind:
            case "record":
                return self._record(depth)
            case "union":
                return self._union(depth)
            case "array":
                return {"type": "array", "items": self._type(depth + 1)}
            case "map":
                return {"type": "map", "values": self._type(depth + 1)}
            case "enum":
                return self._enum()
        return self._named({"type": "fixed", "size": random.choice((2, 4))})

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Give a schema a name that is not taken."""
        while (name := f"N{self._random.randrange(30)}") in self._defined:
            pass
        self._defined.append(name)
        schema["name"] = name
        if self._random.random() < 0.2:
            schema["aliases"] = [f"N{self._random.randrange(30)}"]
        return schema

    def _record(self, depth: int) -> dict[str, Any]:
        record = self._named({"type": "record"})
        names = self._random.sample("abcdef", self._random.randint(0, 4))
        record["fields"] = [self._field(name, depth) for name in names]
        return record

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        kind = self._type(depth + 1)
        field: dict[str, Any] = {"name": name, "type": kind}
        if isinstance(kind, str) and kind in _DEFAULTS and self._random.random() < 0.5:
            field["default"] = _DEFAULTS[kind]
        if self._random.random() < 0.15:
            field["aliases"] = [self._random.choice("ghij")]
        return field

    def _enum(self) -> dict[str, Any]:
        symbols = self._random.sample(_SYMBOLS, self._random.randint(1, 4))
        schema = self._named({"type": "enum", "symbols": symbols})
        if self._random.random() < 0.3:
            schema["default"] = self._random.choice(symbols)
        return schema

    def _union(self, depth: int) -> list[Any]:
        branches: list[Any] = self._random.sample(PRIMITIVES, self._random.randint(1, 3))
        if self._random.random() < 0.5:
            branches.append(self._record(depth + 1))
        return branches

    def _changed(self, schema: Any) -> Any:
        """Change one place of a schema."""
        places = list(_places(schema, None, None))
        parent, key, chosen = self._random.choice(places)
        new = self._mutated(chosen)
        if parent is None:
            return new
        parent[key] = new
        return schema

    def _mutated(self, schema: Any) -> Any:
        random = self._random
        if isinstance(schema, str):
            return random.choice(PRIMITIVES) if schema in PRIMITIVES else schema
        if isinstance(schema, list):
            missing = [name for name in PRIMITIVES if name not in schema]
            if random.random() < 0.5 and len(schema) > 1:
                schema.pop(random.randrange(len(schema)))
            else:
                schema.append(random.choice(missing))
            return schema
        match schema["type"]:
            case "record":
                self._mutate_fields(schema)
            case "enum":
                schema["symbols"] = random.sample(_SYMBOLS, random.randint(1, 4))
                if schema.get("default") not in schema["symbols"]:
                    schema.pop("default", None)
            case "fixed":
                schema["size"] = random.choice((2, 4, 8))
        if "name" in schema and random.random() < 0.15:
            schema["namespace"] = random.choice(("n", "m.o"))
        return schema

    def _mutate_fields(self, record: dict[str, Any]) -> None:
        random, fields = self._random, record["fields"]
        free = [name for name in "abcdefghij" if name not in {field["name"] for field in fields}]
        what = random.choice(("add", "remove", "rename", "default", "alias", "order"))
        if what == "add" or not fields:
            fields.append(self._field(random.choice(free), _DEPTH_MAX))
            return
        field = random.choice(fields)
        match what:
            case "remove":
                fields.remove(field)
            case "rename":
                field["name"] = random.choice(free)
            case "default":
                field.pop("default", None)
            case "alias":
                field["aliases"] = [random.choice(free)]
            case "order":
                random.shuffle(fields)


def _places(schema: Any, parent: Any, key: Any) -> Any:
    """Walk a schema: each type with where it hangs."""
    yield parent, key, schema
    if isinstance(schema, list):
        for place, branch in enumerate(schema):
            yield from _places(branch, schema, place)
    elif isinstance(schema, dict):
        for name in ("items", "values"):
            if name in schema:
                yield from _places(schema[name], schema, name)
        for field in schema.get("fields", ()):
            yield from _places(field["type"], field, "type")
