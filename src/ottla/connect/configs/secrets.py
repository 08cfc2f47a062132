"""Values that a worker must not show: in answers, statuses, dead letters and logs."""

import logging
import re
from typing import Final

HIDDEN: Final = "[hidden]"
_SHORT: Final = 4


class Secrets:
    """All values that were found by config providers, and all passwords of what runs."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str, shown: str = HIDDEN) -> None:
        """Have a value hidden from now on. `shown` is what stands in its place."""
        if value.strip() and value not in self._shown:
            self._shown[value] = shown
            # A longer secret may begin with a shorter one.
            longest_first = sorted(self._shown, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(_expression, longest_first)))

    def mask(self, text: str) -> str:
        """Return a text without any secret."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._shown[found[0]], text)


def _expression(value: str) -> str:
    # A short value is often part of other words, as "5" is.
    escaped = re.escape(value)
    return escaped if len(value) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"


class MaskingFormatter(logging.Formatter):
    """Formats log lines as another formatter does, without secrets."""

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        return self._secrets.mask(self._inner.format(record))


def hide_in_logs(secrets: Secrets) -> None:
    """Have all lines of this process hide secrets."""
    for handler in logging.getLogger().handlers:
        inner = handler.formatter or logging.Formatter()
        handler.setFormatter(MaskingFormatter(inner, secrets))
