"""Log lines for people or for programs, on stderr; and fewer of them when something repeats."""

import json
import logging
import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final

LINES_MAX: Final = 5
"""How many lines of one kind are written in an interval."""
INTERVAL_MS: Final = 10_000
LINE_CHARACTERS_MAX: Final = 1000
"""How long such a line may be: a peer chooses names of topics and groups, of up to 32 KB each."""

_FOR_PEOPLE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """One JSON object on each line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, logger, message and, if there is one, the traceback."""
        line: dict[str, object] = {
            "time_ms": int(record.created * 1000),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logging(as_json: bool, level: str = "INFO") -> None:
    """Send the log of the whole process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else logging.Formatter(_FOR_PEOPLE))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def set_up_audit(logger: str, path: str) -> None:
    """Append what a logger writes to a file that only its owner can read. Without a path, drop it."""
    audit = logging.getLogger(logger)
    audit.propagate = False
    if not path:
        audit.handlers[:] = [logging.NullHandler()]
        audit.setLevel(logging.CRITICAL)
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    audit.handlers[:] = [logging.StreamHandler(os.fdopen(descriptor, "a", encoding="utf-8"))]
    audit.setLevel(logging.INFO)


class RepeatedLines:
    """A logger for what a stranger can cause: after a few lines of a kind, only their number is logged.

    A peer that sends garbage in a loop must not be able to fill the disk with our log.
    """

    def __init__(self, logger: logging.Logger, monotonic_ms: Callable[[], int]) -> None:
        self._logger = logger
        self._monotonic_ms = monotonic_ms
        self._kinds: dict[str, _Kind] = {}

    def warn(self, kind: str, message: str) -> None:
        """Write a line, or count it as one of many. `kind` comes from the program, never from a peer."""
        self._write(kind, message, logging.WARNING, None)

    def fail(self, kind: str, message: str, error: BaseException) -> None:
        """Write a bug of ours with its traceback, or count it: the client that found it can send it again."""
        self._write(kind, message, logging.ERROR, error)

    def _write(self, kind: str, message: str, level: int, error: BaseException | None) -> None:
        now_ms = self._monotonic_ms()
        seen = self._kinds.setdefault(kind, _Kind(now_ms))
        if now_ms - seen.since_ms >= INTERVAL_MS:
            if seen.suppressed:
                self._logger.log(level, "%s: %d more such lines were suppressed", kind, seen.suppressed)
            seen.since_ms, seen.written, seen.suppressed = now_ms, 0, 0
        if seen.written < LINES_MAX:
            seen.written += 1
            self._logger.log(level, "%s: %s", kind, one_line(message), exc_info=error)
        else:
            seen.suppressed += 1


def repeated_lines(logger: str) -> RepeatedLines:
    """Return such a logger that goes by the clock of the process."""
    return RepeatedLines(logging.getLogger(logger), lambda: int(monotonic() * 1000))


def one_line(text: str) -> str:
    """Return text that a peer had a hand in as one line of bounded length."""
    if len(text) > LINE_CHARACTERS_MAX:
        text = f"{text[:LINE_CHARACTERS_MAX]}..."
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


class _Kind:
    __slots__ = ("since_ms", "suppressed", "written")

    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.written = 0
        self.suppressed = 0
