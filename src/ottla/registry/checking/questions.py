"""What the registry wants to know of schemas, and how that is found out: pure functions of texts."""

import json
from collections import OrderedDict
from enum import Enum
from typing import Any, Final, NamedTuple

from ottla.schemas.compatibility import Level, Version, check
from ottla.schemas.errors import InvalidSchema
from ottla.schemas.parsed import ParsedSchema, Reference
from ottla.schemas.parsing import parse_schema

_PARSED_MAX: Final = 200


class Source(NamedTuple):
    """A schema as text, with the texts of all that it refers to, the inner ones first."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    resolved: tuple[tuple[str, str], ...] = ()


class Kind(Enum):
    """What can be asked."""

    TEXT = "the canonical text"
    CHECK = "nothing, or an error for what only a new schema must not have"
    NORMALIZED = "the text and the references of the normalized schema"
    FORMATTED = "the text in a format"
    HAS_FIELD = "whether there is a field at the top"
    MISFITS = "why it does not fit earlier versions"


class Question(NamedTuple):
    """Something to be found out about a schema. Equal questions have equal answers."""

    kind: Kind
    source: Source
    argument: Any = None


class Comparison(NamedTuple):
    """The argument of MISFITS: how to compare, and the versions in their order."""

    level: Level
    is_lenient: bool
    versions: tuple[tuple[int, Source], ...]


class Failure(NamedTuple):
    """An answer: the schema cannot be used."""

    message: str


def encode_question(question: Question) -> bytes:
    """Return a question as bytes."""
    return json.dumps([question.kind.name, question.source, _argument(question.argument)]).encode()


def _argument(argument: Any) -> Any:
    return [argument.level.value, *argument[1:]] if isinstance(argument, Comparison) else argument


def decode_question(data: bytes) -> Question:
    """Read a question."""
    name, source, argument = json.loads(data)
    kind = Kind[name]
    if kind is Kind.MISFITS:
        level, is_lenient, versions = argument
        known = tuple((number, _source(version)) for number, version in versions)
        argument = Comparison(Level(level), is_lenient, known)
    return Question(kind, _source(source), argument)


def _source(value: Any) -> Source:
    schema_type, text, references, resolved = value
    return Source(
        schema_type, text, _references(references), tuple((name, other) for name, other in resolved)
    )


def _references(value: Any) -> tuple[Reference, ...]:
    return tuple(Reference(*item) for item in value)


def encode_answer(answer: Any) -> bytes:
    """Return an answer as bytes."""
    if isinstance(answer, Failure):
        return json.dumps({"failure": answer.message}).encode()
    return json.dumps({"answer": answer}).encode()


def decode_answer(kind: Kind, data: bytes) -> Any:
    """Read the answer to a question of a kind."""
    value = json.loads(data)
    if "failure" in value:
        return Failure(str(value["failure"]))
    if kind is Kind.NORMALIZED:
        text, references = value["answer"]
        return str(text), _references(references)
    return value["answer"]


class Answerer:
    """Answers questions, and keeps the schemas that were parsed last."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[Source, ParsedSchema] = OrderedDict()

    def forget(self) -> None:
        """Free the memory of what was parsed."""
        self._parsed.clear()

    def answer(self, question: Question) -> Any:
        """Return the answer, or a Failure."""
        try:
            return self._answer(question)
        except InvalidSchema as error:
            return Failure(str(error))
        except RecursionError:
            return Failure("it is nested too deeply")

    def _answer(self, question: Question) -> Any:
        schema = self._parse(question.source)
        match question.kind:
            case Kind.TEXT:
                return schema.text
            case Kind.CHECK:
                return schema.check()
            case Kind.NORMALIZED:
                normalized = schema.normalized()
                return normalized.text, tuple(normalized.references)
            case Kind.FORMATTED:
                return schema.formatted(question.argument)
            case Kind.HAS_FIELD:
                return schema.has_top_level_field(question.argument)
            case Kind.MISFITS:
                return self._misfits(schema, question.argument)

    def _misfits(self, schema: ParsedSchema, comparison: Comparison) -> list[str]:
        previous = [
            Version(number, lambda source=source: self._parse(source))  # type: ignore[misc]
            for number, source in comparison.versions
        ]
        return check(comparison.level, schema, previous, is_lenient=comparison.is_lenient)

    def _parse(self, source: Source) -> ParsedSchema:
        parsed = self._parsed.get(source)
        if parsed is None:
            parsed = parse_schema(*source[:3], dict(source.resolved))
            self._parsed[source] = parsed
            if len(self._parsed) > _PARSED_MAX:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(source)
        return parsed
