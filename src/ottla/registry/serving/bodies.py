"""JSON in and out of requests."""

import json
import re
from typing import Final

from ottla.registry.errors import RegistryError
from ottla.schemas.stored.subjects import Subject
from ottla.schemas.stored.values import Json, StoredSchema, references_to_json

CONTENT_TYPES: Final = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
BODY_TYPES: Final = (*CONTENT_TYPES, "application/octet-stream")
_KEY_BEGUN: Final = re.compile(r'[{,]\s*"[^"]*$')


def answer_type(accept: str | None) -> str:
    """Return the content type of an answer: the first that the client takes."""
    if not accept:
        return CONTENT_TYPES[0]
    for part in accept.split(","):
        kind = part.split(";")[0].strip().lower()
        if kind in CONTENT_TYPES:
            return kind
        if kind in ("*/*", "application/*"):
            return CONTENT_TYPES[0]
    raise RegistryError(406, "HTTP 406 Not Acceptable")


def read_body(data: bytes, operation: str) -> Json:
    """Read the body of a request. `operation` is what Confluent's registry calls it in messages."""
    if not data.strip():
        raise RegistryError(422, f"{operation}.request must not be null (was null)")
    try:
        text = data.decode()
        value = json.loads(text)
    except UnicodeDecodeError:
        raise RegistryError(400, "Invalid UTF-8 in the body") from None
    except RecursionError:
        raise RegistryError(400, "The body is nested too deeply") from None
    except ValueError as error:
        if _KEY_BEGUN.search(text) and "Unterminated string" in str(error):
            raise RegistryError(400, "Unexpected end-of-input in field name") from None
        raise RegistryError(400, f"The body is not JSON: {error}") from None
    if value is None:
        raise RegistryError(422, f"{operation}.request must not be null (was null)")
    if not isinstance(value, dict):
        raise RegistryError(400, f"Cannot deserialize the body: it is an object, not {text[:20]!r}")
    return value


def _parts(schema: StoredSchema, references: list[Json]) -> Json:
    body: Json = {}
    if schema.references:
        body["references"] = references
    if schema.metadata is not None:
        body["metadata"] = schema.metadata
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set
    return body


def registered(schema: StoredSchema, text: str) -> Json:
    """Return the answer to a registration."""
    return {
        "id": schema.id,
        "version": schema.version,
        "guid": schema.guid,
        "schemaType": schema.schema_type,
        **_parts(schema, references_to_json(schema.references)),
        "schema": text,
    }


def found(schema: StoredSchema, text: str) -> Json:
    """Return the answer to a search for a schema in a subject."""
    return {"subject": schema.subject, **registered(schema, text)}


def version(schema: StoredSchema, text: str, *, qualified: bool = False) -> Json:
    """Return a version of a subject."""
    references = references_to_json(schema.references)
    if qualified:
        parent = Subject.parse(schema.subject)
        references = [{**item, "subject": str(parent.beside(item["subject"]))} for item in references]
    return {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "guid": schema.guid,
        "schemaType": schema.schema_type,
        **_parts(schema, references),
        "schema": text,
        "ts": schema.timestamp_ms,
        "deleted": schema.is_deleted,
    }


def by_id(schema: StoredSchema, text: str, *, qualified: bool = False, highest: int | None = None) -> Json:
    """Return a schema that was asked for by its id."""
    body = version(schema, text, qualified=qualified)
    del body["id"]
    return body if highest is None else {**body, "maxId": highest}
