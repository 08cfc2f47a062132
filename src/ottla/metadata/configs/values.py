"""Config values between text and Python, by Kafka's rules.

Text is trimmed. A list is split at commas, and an empty text is an empty list; `a,,b` has an empty element in
the middle, as in Kafka. Numbers are Java's: no underscores, no surrounding words, and they have to fit their
width. `format_value` gives back the text Kafka shows for a value, which is not always the text it was set by
(`TRUE` comes back as `true`, `1e3` as `1000.0`).
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from ottla.wire.config_kinds import ConfigType

HIDDEN: Final = "[hidden]"
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
# Java's Double.parseDouble takes a type suffix, and hexadecimal floats too, which nobody writes in a config.
# Digits can be read in one way only: otherwise thousands of them and a letter keep the node busy for minutes.
_DOUBLE: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_DOUBLE_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_WIDTHS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# What Java's regular expressions take for white space.
_WHITE_SPACE: Final = " \t\n\v\f\r"
# What Java's String.trim takes away: every character up to the space, and no other white space.
_BLANKS: Final = "".join(map(chr, range(33)))


class Password:
    """A secret. It never shows itself, neither in a log line nor in a traceback."""

    __slots__ = ("secret",)

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.secret)


ConfigValue = bool | int | float | str | tuple[str, ...] | Password | None


class WrongType(ValueError):
    """A text does not denote a value of the type it should have."""


def parse_value(config_type: ConfigType, text: str) -> ConfigValue:
    """Return the value that `text` denotes."""
    return _PARSERS[config_type](text.strip(_BLANKS), config_type)


def format_value(config_type: ConfigType, value: ConfigValue) -> str | None:
    """Return the text Kafka shows for `value`."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if config_type is ConfigType.DOUBLE:
        assert isinstance(value, float)
        return format_double(value)
    return str(value)


def format_double(value: float) -> str:
    """Write a double as Java does: `1.0E7` where Python says `10000000.0`, and `NaN` for `nan`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    power = exponent + len(rest)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{power}"


def _boolean(text: str, _: ConfigType) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise WrongType("Expected value to be either true or false")
    return lowered == "true"


def _integer(text: str, config_type: ConfigType) -> int:
    bits = _WIDTHS[config_type]
    # The length is bounded first: Python refuses to convert thousands of digits, and none of them could fit.
    if len(text) > 64 or not _INTEGER.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise WrongType(f"Not a number of type {config_type.name}")
    return int(text)


def _double(text: str, config_type: ConfigType) -> float:
    if text in _DOUBLE_WORDS:
        return _DOUBLE_WORDS[text]
    match = _DOUBLE.fullmatch(text)
    if match is None:
        raise WrongType(f"Not a number of type {config_type.name}")
    return float(match[1])


def _list(text: str, _: ConfigType) -> tuple[str, ...]:
    # Kafka splits at `\s*,\s*`. That takes time by the square of the spaces, and anybody can send many.
    return tuple(part.strip(_WHITE_SPACE) for part in text.split(",")) if text else ()


def _text(text: str, _: ConfigType) -> str:
    return text


def _password(text: str, _: ConfigType) -> Password:
    return Password(text)


_PARSERS: Final[dict[ConfigType, Callable[[str, ConfigType], ConfigValue]]] = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: _text,
    ConfigType.INT: _integer,
    ConfigType.SHORT: _integer,
    ConfigType.LONG: _integer,
    ConfigType.DOUBLE: _double,
    ConfigType.LIST: _list,
    ConfigType.CLASS: _text,
    ConfigType.PASSWORD: _password,
}
