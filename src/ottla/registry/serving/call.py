"""A request as handlers see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ottla.registry.deciding.decision import Decision
from ottla.registry.errors import RegistryError, invalid_version
from ottla.registry.service import Registry
from ottla.registry.serving.bodies import read_body
from ottla.schemas.stored.subjects import Subject, normalize
from ottla.schemas.stored.values import Json

T = TypeVar("T")
LATEST: Final = -1
_VERSION_MAX: Final = (1 << 31) - 1
ID_DIGITS_MAX: Final = len(str(_VERSION_MAX))


@dataclass(frozen=True)
class Change(Generic[T]):
    """What a handler returns to have something written: how to decide it, and how to answer then."""

    decide: Callable[[], Decision[T]]
    show: Callable[[T], Any] = lambda answer: answer


class NoContent:
    """An answer without a body."""


class Text(str):
    """An answer that is no JSON of ours: the text of a schema."""

    __slots__ = ()


class Call:
    """A request to a registry: its path, its query and its body."""

    def __init__(
        self, registry: Registry, path: Mapping[str, str], query: Mapping[str, list[str]], data: bytes
    ) -> None:
        self.registry = registry
        self._path = path
        self._query = query
        self._data = data
        self._body: Json | None = None

    @property
    def state(self) -> Any:
        """What the registry knows."""
        return self.registry.state

    @property
    def subject(self) -> str:
        """The subject of the path, as it is stored."""
        return normalize(self._path["subject"])

    @property
    def target(self) -> str:
        """The subject of the path, or the one that it is an alias of."""
        return self.unaliased(self._path["subject"])

    def unaliased(self, text: str) -> str:
        """Return the subject that a name stands for."""
        subject = normalize(text)
        alias = (self.registry.state.config(subject) or {}).get("alias")
        return str(Subject.parse(subject).beside(alias)) if alias else subject

    @property
    def scope(self) -> str | None:
        """The subject or context of the path that a setting is for. None: all."""
        if "subject" not in self._path or Subject.parse(self._path["subject"]).is_default_context:
            return None
        return self.subject

    @property
    def version(self) -> int:
        """The version of the path. The latest is -1."""
        text = self._path["version"]
        if text in ("latest", "-1"):
            return LATEST
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:12]) <= _VERSION_MAX:
            raise invalid_version(text)
        return int(text)

    def segment(self, name: str) -> str:
        """Return a part of the path."""
        return self._path[name]

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter."""
        return self._query.get(name, [default])[0]

    def texts(self, name: str) -> list[str]:
        """Return a parameter that may be repeated."""
        return self._query.get(name, [])

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false."""
        return self.text(name).lower() == "true"

    def page(self, items: list[T]) -> list[T]:
        """Return the part of a list that the parameters `offset` and `limit` ask for."""
        offset, limit = self._number("offset", 0), self._number("limit", -1)
        return items[offset : offset + limit] if limit > 0 else items[offset:]

    def _number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            # As for any path that leads nowhere: that is how Confluent's server sees it.
            raise RegistryError(404, "HTTP 404 Not Found") from None
        return max(number, default)

    def body(self, operation: str) -> Json:
        """Return the body of the request."""
        # A handler is called again for each answer that it lacks.
        if self._body is None:
            self._body = read_body(self._data, operation)
        return self._body
