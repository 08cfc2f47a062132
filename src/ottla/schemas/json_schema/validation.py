"""Whether a value fits a JSON Schema. The library `jsonschema` decides."""

from collections.abc import Callable
from typing import Any

from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from ottla.schemas.json_schema.references import make_registry
from ottla.schemas.json_schema.schema import JsonSchema, draft_uri
from ottla.schemas.json_text import parse_json

Check = Callable[[Any], str | None]


def make_check(schema: JsonSchema) -> Check:
    """Return a function that says what is wrong with a value: None if it fits."""
    if isinstance(schema.value, bool):
        refusal = None if schema.value else "the schema accepts no value at all"
        return lambda _value: refusal
    resolved = {name: parse_json(text) for name, text in schema.resolved.items()}
    contents, registry = make_registry(schema.value, resolved)
    kind = validator_for({"$schema": draft_uri(schema.value)})
    validator = kind(contents, registry=registry)

    def check(value: Any) -> str | None:
        error = best_match(validator.iter_errors(value))
        if error is None:
            return None
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        return f"field {path[1:]}: {error.message}" if path else f"the value does not fit: {error.message}"

    return check
