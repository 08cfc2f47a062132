"""A parsed JSON Schema."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.json_schema.comparing import compare
from ottla.schemas.json_schema.differences import COMPATIBLE, LENIENT, difference
from ottla.schemas.json_schema.loading import load
from ottla.schemas.json_schema.model import Node
from ottla.schemas.json_schema.references import draft_of
from ottla.schemas.json_text import compact, parse_json, sorted_keys
from ottla.schemas.parsed import Difference, ParsedSchema, Reference


class JsonSchema(ParsedSchema):
    """A JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12. Without `$schema` it is draft 7."""

    schema_type = "JSON"

    def __init__(
        self, text: str, references: Sequence[Reference] = (), resolved: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(references, resolved or {})
        self.value: Any = parse_json(text)
        if not isinstance(self.value, dict | bool):
            raise InvalidSchema("a JSON Schema is an object, true or false")

    @property
    def text(self) -> str:
        """The schema without white space, in the order it came."""
        return compact(self.value)

    @property
    def name(self) -> str | None:
        """The title."""
        title = self.value.get("title") if isinstance(self.value, dict) else None
        return title if isinstance(title, str) else None

    @cached_property
    def root(self) -> Node:
        """The schema as nodes."""
        try:
            return load(self.value, {name: parse_json(text) for name, text in self.resolved.items()})
        except (TypeError, AttributeError, ValueError) as error:
            # Keywords with values of a wrong type. The meta-schema says which.
            check_against_meta_schema(self.value)
            raise InvalidSchema(str(error)) from error

    def check(self) -> None:
        """Refuse what the meta-schema refuses, and references that lead nowhere."""
        check_against_meta_schema(self.value)
        _ = self.root

    def normalized(self) -> Self:
        """Return the schema with all keys sorted."""
        return type(self)(compact(sorted_keys(self.value)), self.references, self.resolved)

    def differences(self, writer: Self, *, is_lenient: bool = False) -> list[Difference]:
        """Return why this schema does not accept all that `writer` accepts."""
        allowed = LENIENT if is_lenient else COMPATIBLE
        return [
            difference(change.kind, "#/" + "/".join(change.path))
            for change in compare(writer.root, self.root, allowed)
            if change.kind not in allowed
        ]

    def has_top_level_field(self, name: str) -> bool:
        """Say whether the object has the property."""
        properties = self.value.get("properties") if isinstance(self.value, dict) else None
        return isinstance(properties, dict) and name in properties


def check_against_meta_schema(value: Any) -> None:
    """Refuse a schema that its draft does not allow. Raises InvalidSchema."""
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import validator_for

    validator = validator_for({"$schema": draft_uri(value)})
    errors = list(validator(validator.META_SCHEMA).iter_errors(value))
    if errors:
        worst: SchemaError = best_match(errors)
        path = "/".join(map(str, worst.absolute_path))
        raise InvalidSchema(f"#/{path}: {worst.message}")


def draft_uri(value: Any) -> str:
    """Return the URI of the draft that a schema is checked by."""
    return {
        "draft-04": "http://json-schema.org/draft-04/schema#",
        "draft-06": "http://json-schema.org/draft-06/schema#",
        "draft-07": "http://json-schema.org/draft-07/schema#",
        "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
        "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    }[draft_of(value).name]
