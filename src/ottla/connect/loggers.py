"""Levels of logging, by the names of the REST API.

A namespace of Kafka Connect stands for the part of Ottla that does its work, so that tools which set the
levels of a Java worker work here.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

ROOT: Final = "root"
_LEVELS: Final[Mapping[str, int]] = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
_JAVA: Final = "org.apache.kafka.connect"
_OURS: Final = "ottla.connect"


class Loggers:
    """The levels of this worker."""

    def __init__(self) -> None:
        self._changed: dict[str, tuple[str, int]] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all levels that are set."""
        names = sorted({ROOT, _OURS, *self._changed})
        return {name: found for name in names if (found := self.find(name)) is not None}

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the level of a logger."""
        if name in self._changed:
            level, modified_ms = self._changed[name]
            return {"level": level, "last_modified": modified_ms}
        if name not in (ROOT, _OURS):
            return None
        effective = _logger(name).getEffectiveLevel()
        return {"level": _name_of(effective), "last_modified": None}

    def set(self, namespace: str, level: str, now_ms: int) -> list[str]:
        """Set the level of a namespace. Returns all loggers that this changes."""
        below = [name for name in self.all() if name == namespace or name.startswith(f"{namespace}.")]
        changed = sorted({*below, namespace})
        for name in changed:
            self._changed[name] = (level, now_ms)
            _logger(name).setLevel(_LEVELS[level])
        return changed


def parse_level(text: str) -> str | None:
    """Return a level. None: there is no such level."""
    return text.upper() if text.upper() in _LEVELS else None


def _logger(name: str) -> logging.Logger:
    if name == ROOT:
        return logging.getLogger()
    is_java = name == _JAVA or name.startswith(f"{_JAVA}.")
    return logging.getLogger(_OURS + name.removeprefix(_JAVA) if is_java else name)


def _name_of(level: int) -> str:
    return next((name for name, number in _LEVELS.items() if number <= level), "TRACE")
