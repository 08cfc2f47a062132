"""What happens to records that cannot be processed: the task fails, or they are left out and reported."""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from ottla.connect.configs.shared_keys import DLQ_HEADERS, DLQ_TOPIC, LOG_ENABLE, LOG_MESSAGES, TOLERANCE
from ottla.connect.errors import RECORD_ERRORS, ToleranceExceeded
from ottla.connect.plugins import Config

_logger = logging.getLogger(__name__)
T = TypeVar("T")
_HEADER: Final = "__connect.errors."
_FACT_MAX: Final = 8_192


class Stage(StrEnum):
    """Where a record was when it could not be processed."""

    TASK_POLL = "TASK_POLL"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TASK_PUT = "TASK_PUT"


class Skipped(Exception):
    """A record that is left out."""


@dataclass(frozen=True)
class DeadLetter:
    """A record of a topic as it was read, for the topic of dead letters."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


class Tolerance:
    """Decides what an error of one record means, by the keys `errors.*` of the connector."""

    def __init__(self, config: Config, connector: str, task: int, mask: Callable[[str], str] = str) -> None:
        self._mask = mask
        self._is_tolerant = config.get(TOLERANCE, "none") == "all"
        self._logs = config.get(LOG_ENABLE, "false").lower() == "true"
        self._names_records = config.get(LOG_MESSAGES, "false").lower() == "true"
        self._adds_headers = config.get(DLQ_HEADERS, "false").lower() == "true"
        self.dead_letter_topic = config.get(DLQ_TOPIC, "").strip() or None
        self._connector = connector
        self._task = task
        self.dead_letters: list[DeadLetter] = []
        """What is to be written to the topic of dead letters before offsets are committed."""

    def attempt(self, stage: Stage, class_name: str, origin: Any, work: Callable[[], T]) -> T:
        """Do one step for one record. Raises Skipped or ToleranceExceeded if it cannot be done."""
        try:
            return work()
        except RECORD_ERRORS as error:
            self.report(stage, class_name, origin, error)
            raise Skipped from error

    def report(self, stage: Stage, class_name: str, origin: Any, error: Exception) -> None:
        """Report a record that cannot be processed. Raises ToleranceExceeded if that is not tolerated."""
        if self._logs or not self._is_tolerant:
            named = f" of {origin.where} at offset {origin.offset}" if origin and self._names_records else ""
            _logger.error(
                "task %s-%d: a record%s failed in %s (%s): %s",
                self._connector,
                self._task,
                named,
                stage.value,
                class_name,
                error,
            )
        if self.dead_letter_topic is not None and origin is not None:
            self.dead_letters.append(self._letter(stage, class_name, origin, error))
        if not self._is_tolerant:
            named = f"a record of {origin.where} at offset {origin.offset}" if origin else "a record"
            raise ToleranceExceeded(
                f"Tolerance exceeded in error handler: {named} failed in {stage.value}: {error}"
            ) from error

    def _shown(self, fact: str) -> bytes:
        """Return a fact for a header. The record may be in it, and a letter can be too large to write."""
        text = self._mask(fact)
        cut = text if len(text) <= _FACT_MAX else f"{text[:_FACT_MAX]}..."
        return cut.encode(errors="backslashreplace")

    def _letter(self, stage: Stage, class_name: str, origin: Any, error: Exception) -> DeadLetter:
        headers = tuple(origin.headers or ())
        if self._adds_headers:
            facts = {
                "topic": origin.topic,
                "partition": origin.partition,
                "offset": origin.offset,
                "connector.name": self._connector,
                "task.id": self._task,
                "stage": stage.value,
                "class.name": class_name,
                "exception.class.name": f"{type(error).__module__}.{type(error).__qualname__}",
                "exception.message": str(error),
                "exception.stacktrace": "".join(traceback.format_exception(error)),
            }
            headers += tuple((_HEADER + name, self._shown(str(fact))) for name, fact in facts.items())
        return DeadLetter(origin.key, origin.value, origin.timestamp_ms, headers)
