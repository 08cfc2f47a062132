"""Schemas of the registry, parsed, with the texts of what they refer to."""

from collections import OrderedDict
from typing import Final

from ottla.registry.errors import RegistryError, invalid_schema
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import ParsedSchema, Reference
from ottla.schemas.parsing import SCHEMA_TYPES, parse_schema
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import Subject
from ottla.schemas.stored.values import StoredSchema

_PARSED_MAX: Final = 1000
_REFERENCES_MAX: Final = 1000


class Parser:
    """Parses schemas of a registry, and keeps those that were parsed last."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._parsed: OrderedDict[tuple[object, ...], ParsedSchema] = OrderedDict()

    def stored(self, schema: StoredSchema) -> ParsedSchema:
        """Parse a schema that is registered."""
        return self.parse(schema.subject, schema.schema_type, schema.text, schema.references)

    def parse(
        self, subject: str, schema_type: str, text: str, references: tuple[Reference, ...]
    ) -> ParsedSchema:
        """Parse a schema as it is meant in a subject. Raises RegistryError."""
        if schema_type not in SCHEMA_TYPES:
            raise invalid_schema(f"Invalid schema type {schema_type}")
        try:
            actual, resolved = self._resolve(Subject.parse(subject), references)
            key = schema_type, text, actual, tuple(resolved.items())
            parsed = self._parsed.get(key)
            if parsed is None:
                parsed = parse_schema(schema_type, text, actual, resolved)
                self._parsed[key] = parsed
                if len(self._parsed) > _PARSED_MAX:
                    self._parsed.popitem(last=False)
            else:
                self._parsed.move_to_end(key)
        except InvalidSchema as error:
            raise unusable(schema_type, text, references, error) from error
        except RecursionError as error:
            raise unusable(schema_type, text, references, ValueError("it is nested too deeply")) from error
        return parsed

    def _resolve(
        self, parent: Subject, references: tuple[Reference, ...]
    ) -> tuple[tuple[Reference, ...], dict[str, str]]:
        """Return the references with the versions they mean now, and all texts, the inner ones first."""
        resolved: dict[str, str] = {}
        actual = []
        for reference in references:
            subject = parent.beside(reference.subject)
            found = self._state.find(str(subject), reference.version, deleted=reference.version >= 0)
            if found is None:
                raise InvalidSchema(
                    f"no schema is registered for the reference {reference.name!r}: subject "
                    f"{reference.subject!r}, version {reference.version}"
                )
            actual.append(replace_version(reference, found.version))
            self._collect(reference.name, found, resolved)
        return tuple(actual), resolved

    def _collect(self, name: str, schema: StoredSchema, resolved: dict[str, str]) -> None:
        if name in resolved:
            return
        if len(resolved) > _REFERENCES_MAX:
            raise InvalidSchema(f"it has more than {_REFERENCES_MAX} references")
        parent = Subject.parse(schema.subject)
        # Mark it now, so that schemas that refer to each other come to an end, and put it last below.
        resolved[name] = schema.text
        for reference in schema.references:
            found = self._state.find(str(parent.beside(reference.subject)), reference.version, deleted=True)
            if found is not None:
                self._collect(reference.name, found, resolved)
        resolved[name] = resolved.pop(name)


def replace_version(reference: Reference, version: int) -> Reference:
    """Return a reference to a certain version."""
    return reference._replace(version=version)


def unusable(schema_type: str, text: str, references: tuple[Reference, ...], why: Exception) -> RegistryError:
    """Return the error for a schema that cannot be used."""
    refs = ", ".join(
        f"{{name='{name}', subject='{sub}', version={number}}}" for name, sub, number in references
    )
    return invalid_schema(f"Invalid schema {text} with refs [{refs}] of type {schema_type}, details: {why}")
