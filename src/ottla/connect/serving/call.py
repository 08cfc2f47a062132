"""A request as handlers see it, and what they answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.connect.errors import RestError
from ottla.connect.worker import Worker

# No task has a longer number, and of thousands of digits none is made.
_DIGITS_MAX: Final = 9
# Each is compared with all that are known, while everybody else waits.
_KEYS_MAX: Final = 2_000
_MISSING: Final = "Cannot read the body: it is empty"


@dataclass(frozen=True)
class Answer:
    """What is sent back. Without a body: nothing but the status."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    has_body: bool = True


def nothing(status: int) -> Answer:
    """Return an answer without a body."""
    return Answer(status, has_body=False)


@dataclass(frozen=True)
class Call:
    """A request to a worker."""

    worker: Worker
    path: Mapping[str, str]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    data: bytes
    is_forwarded: bool = False
    """Whether another worker has signed it."""

    @property
    def connector(self) -> str:
        """The connector of the path."""
        return self.path["connector"]

    @property
    def task(self) -> int:
        """The task of the path. What is not a number leads nowhere."""
        text = self.path["task"]
        if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
            raise RestError(404, "HTTP 404 Not Found")
        return int(text)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the query."""
        return self.query.get(name, [default])[0]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a parameter that is true or false."""
        return self.text(name, str(default)).lower() == "true"

    def json(self) -> Any:
        """Return the body. What cannot be read is an error of the server in Kafka's worker, and so here."""
        if not self.data.strip():
            raise RestError(500, _MISSING)
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise RestError(500, f"Cannot read the body: it is not JSON: {error}") from error

    def config(self) -> dict[str, str | None]:
        """Return the body as a configuration."""
        return as_config(self.json())


def as_config(value: Any) -> dict[str, str | None]:
    """Check a configuration. Numbers and truth values count as text."""
    if not isinstance(value, dict):
        raise RestError(500, "Cannot read the body: a configuration is an object of texts")
    if len(value) > _KEYS_MAX:
        raise RestError(400, f"A configuration has {_KEYS_MAX} keys at most")
    return {key: _as_text(key, item) for key, item in value.items()}


def _as_text(key: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise RestError(500, f"Cannot read the body: the value of {key!r} is not a text")
