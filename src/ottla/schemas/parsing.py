"""From a type and a text to a parsed schema. The libraries of a format are imported when it is first used."""

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import ParsedSchema, Reference

SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")


def parse_schema(
    schema_type: str,
    text: str,
    references: Sequence[Reference] = (),
    resolved: Mapping[str, str] | None = None,
) -> ParsedSchema:
    """Parse a schema. `resolved` has the texts of all references, also of those that references have.

    Raises InvalidSchema.
    """
    match schema_type:
        case "AVRO":
            from ottla.schemas.avro.schema import AvroSchema

            return AvroSchema(text, references, resolved)
        case "JSON":
            from ottla.schemas.json_schema.schema import JsonSchema

            return JsonSchema(text, references, resolved)
        case "PROTOBUF":
            from ottla.schemas.protobuf.schema import ProtobufSchema

            return ProtobufSchema(text, references, resolved)
        case _:
            raise InvalidSchema(f"Invalid schema type {schema_type}")
