"""Schemas of the registry, parsed, with the texts of what they refer to."""

from typing import Final, Self

from ottla.registry.checking.answers import Answers
from ottla.registry.checking.questions import Comparison, Kind, Question, Source
from ottla.registry.errors import RegistryError, invalid_schema
from ottla.schemas.compatibility import Level
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import Reference
from ottla.schemas.parsing import SCHEMA_TYPES
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import Subject
from ottla.schemas.stored.values import StoredSchema

_REFERENCES_MAX: Final = 1000


class CheckedSchema:
    """A schema that a worker has parsed. All that is to be known of it may raise NotYetKnown."""

    def __init__(self, answers: Answers, source: Source, text: str) -> None:
        self._answers = answers
        self._source = source
        self.text = text

    @property
    def schema_type(self) -> str:
        """The format."""
        return self._source.schema_type

    @property
    def references(self) -> tuple[Reference, ...]:
        """What it refers to."""
        return self._source.references

    def check(self) -> None:
        """Refuse what a parser accepts and a new schema must not have. Raises InvalidSchema."""
        self._answers.ask(Question(Kind.CHECK, self._source))

    def normalized(self) -> Self:
        """Return the same schema with all that is only a matter of style made uniform."""
        text, references = self._answers.ask(Question(Kind.NORMALIZED, self._source))
        source = self._source._replace(text=text, references=references)
        return type(self)(self._answers, source, text)

    def formatted(self, wanted: str) -> str:
        """Return the text in another format."""
        text: str = self._answers.ask(Question(Kind.FORMATTED, self._source, wanted))
        return text

    def has_top_level_field(self, name: str) -> bool:
        """Say whether there is a field of this name at the top."""
        return bool(self._answers.ask(Question(Kind.HAS_FIELD, self._source, name)))

    def misfits(
        self, level: Level, versions: tuple[tuple[int, Source], ...], *, is_lenient: bool
    ) -> list[str]:
        """Return why it does not fit earlier versions, which are in their order. Raises InvalidSchema."""
        comparison = Comparison(level, is_lenient, versions)
        why: list[str] = self._answers.ask(Question(Kind.MISFITS, self._source, comparison))
        return list(why)


class Parser:
    """Parses schemas of a registry."""

    def __init__(self, state: State, answers: Answers) -> None:
        self._state = state
        self._answers = answers

    def stored(self, schema: StoredSchema) -> CheckedSchema:
        """Parse a schema that is registered."""
        return self.parse(schema.subject, schema.schema_type, schema.text, schema.references)

    def parse(
        self, subject: str, schema_type: str, text: str, references: tuple[Reference, ...]
    ) -> CheckedSchema:
        """Parse a schema as it is meant in a subject. Raises RegistryError."""
        if schema_type not in SCHEMA_TYPES:
            raise invalid_schema(f"Invalid schema type {schema_type}")
        try:
            source = self._source(subject, schema_type, text, references)
            return CheckedSchema(self._answers, source, self._answers.ask(Question(Kind.TEXT, source)))
        except InvalidSchema as error:
            raise unusable(schema_type, text, references, error) from error
        except RecursionError as error:
            raise unusable(schema_type, text, references, ValueError("it is nested too deeply")) from error

    def source(self, schema: StoredSchema) -> Source:
        """Return a schema that is registered as a text with all that it refers to. Raises InvalidSchema."""
        return self._source(schema.subject, schema.schema_type, schema.text, schema.references)

    def _source(self, subject: str, schema_type: str, text: str, references: tuple[Reference, ...]) -> Source:
        actual, resolved = self._resolve(Subject.parse(subject), references)
        return Source(schema_type, text, actual, tuple(resolved.items()))

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
