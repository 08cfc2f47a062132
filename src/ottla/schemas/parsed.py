"""What all parsed schemas can do, whatever their format."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self


class Reference(NamedTuple):
    """A schema that another one uses: its name there, and where it is registered."""

    name: str
    subject: str
    version: int


class Difference(NamedTuple):
    """One incompatible change. The path leads to it from the root of the schema.

    The description has two places for the words that name the schemas: first the one that reads, then the
    one that wrote.
    """

    kind: str
    path: str
    description: str
    detail: str = ""

    def sentence(self, reader: str, writer: str) -> str:
        """Say what is wrong, with the schemas named."""
        return self.description.format(reader=reader, writer=writer)


class ParsedSchema(ABC):
    """A schema of one format. Two are equal if their texts and references are."""

    schema_type: str

    def __init__(self, references: Sequence[Reference], resolved: Mapping[str, str]) -> None:
        self.references = tuple(references)
        self.resolved = dict(resolved)

    @property
    @abstractmethod
    def text(self) -> str:
        """The canonical text: what a registry stores."""

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The full name of what the schema describes, if it has one."""

    @abstractmethod
    def check(self) -> None:
        """Refuse what a parser accepts and a new schema must not have. Raises InvalidSchema."""

    @abstractmethod
    def normalized(self) -> Self:
        """Return the same schema with all that is only a matter of style made uniform."""

    @abstractmethod
    def differences(self, writer: Self) -> list[Difference]:
        """Return why this schema cannot read what was written with `writer`."""

    def formatted(self, wanted: str) -> str:
        """Return the text in another format. Formats that are not known give the canonical text."""
        del wanted
        return self.text

    def has_top_level_field(self, name: str) -> bool:
        """Say whether there is a field of this name at the top."""
        del name
        return False
