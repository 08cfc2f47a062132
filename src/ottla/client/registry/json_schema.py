"""JSON values, checked by their JSON Schema before they are sent."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.serializing import SchemaDeserializer, SchemaSerializer
from ottla.schemas.errors import MisfitValue, UnreadableValue
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.json_schema.validation import make_check
from ottla.schemas.parsed import ParsedSchema, Reference


class JsonSerializer(SchemaSerializer):
    """Writes values as JSON. Without a schema it writes with the latest version of the subject."""

    schema_type = "JSON"

    def __init__(self, registry: RegistryClient, schema: str | None = None, **options: Any) -> None:
        if schema is None:
            options["use_latest"] = True
        super().__init__(registry, **options)
        self._schema = None if schema is None else JsonSchema(schema, self._references)

    def _record_name(self) -> str | None:
        return None if self._schema is None else self._schema.name

    def _own_schema(self) -> tuple[str, Sequence[Reference]]:
        assert self._schema is not None, "without one the latest is used"
        return self._schema.text, self._references

    def _encoder(self, registered: Registered) -> Callable[[Any], bytes]:
        schema = self._registry.parse(registered)
        assert isinstance(schema, JsonSchema), "the registry was asked for one"
        find_misfit = make_check(schema)

        def encode(value: Any) -> bytes:
            misfit = find_misfit(value)
            if misfit is not None:
                raise MisfitValue(misfit)
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

        return encode


class JsonDeserializer(SchemaDeserializer):
    """Reads JSON values. With `validate` they are checked by their schema again."""

    schema_type = "JSON"

    def __init__(self, registry: RegistryClient, *, validate: bool = False, **options: Any) -> None:
        super().__init__(registry, **options)
        self._validate = validate

    def _decoder(self, writer: ParsedSchema) -> Callable[[bytes, int], Any]:
        assert isinstance(writer, JsonSchema), "the type was checked"
        find_misfit = make_check(writer) if self._validate else None

        def decode(data: bytes, position: int) -> Any:
            try:
                value = json.loads(data[position:])
            except (ValueError, RecursionError) as error:
                raise UnreadableValue(f"it is not JSON: {error}") from error
            misfit = None if find_misfit is None else find_misfit(value)
            if misfit is not None:
                raise UnreadableValue(misfit)
            return value

        return decode
