"""Dates in the patterns of Java's SimpleDateFormat, as far as numbers go: yyyy-MM-dd'T'HH:mm:ss.SSSZ."""

import datetime
import re
from typing import Final

from ottla.connect.errors import DataError
from ottla.model.patterns import InvalidPattern, compile_pattern

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_WIDTHS: Final = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
_ZONES: Final = ("Z", "X", "z")


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """Return the parts of a pattern: a letter with its run, or no letter with a text."""
    tokens = []
    for match in _TOKEN.finditer(pattern):
        quoted, letter = match.groups()
        if letter is not None:
            if letter not in _WIDTHS and letter not in _ZONES:
                raise DataError(f"the date format {pattern!r} has {letter!r}, which is not supported")
            tokens.append((letter, match[0]))
        else:
            tokens.append(("", match[0] if quoted is None else quoted.replace("''", "'") or "'"))
    return tokens


def format_date(pattern: str, when: datetime.datetime) -> str:
    """Return a time in UTC as text."""
    values = {
        "y": when.year,
        "M": when.month,
        "d": when.day,
        "H": when.hour,
        "m": when.minute,
        "s": when.second,
        "S": when.microsecond // 1000,
    }
    text = ""
    for letter, part in _tokens(pattern):
        if not letter:
            text += part
        elif letter in _ZONES:
            text += {"Z": "+0000", "X": "Z", "z": "UTC"}[letter]
        elif letter == "y" and len(part) == 2:
            text += f"{when.year % 100:02}"
        else:
            text += str(values[letter]).zfill(len(part))
    return text


def parse_date(pattern: str, text: str) -> datetime.datetime:
    """Read a time. Without a zone it is in UTC. Raises DataError."""
    expression, letters = "", []
    for letter, part in _tokens(pattern):
        if not letter:
            expression += re.escape(part)
        elif letter in _ZONES:
            expression += r"(Z|UTC|GMT|[+-]\d\d:?\d\d)"
            letters.append(letter)
        else:
            expression += rf"(\d{{{len(part)},{max(len(part), _WIDTHS[letter])}}})"
            letters.append(letter)
    try:
        # A format may have many ways to divide digits among its letters. RE2 tries none of them twice.
        found = compile_pattern(expression).fullmatch(text)
    except (InvalidPattern, UnicodeEncodeError):
        found = None
    if found is None:
        raise DataError(f"Could not parse timestamp: value ({text}) does not match pattern ({pattern})")
    values: dict[str, int] = {}
    shift = datetime.timedelta()
    for letter, value in zip(letters, found.groups(), strict=True):
        if letter in _ZONES:
            shift = _shift(value)
        else:
            values[letter] = int(value)
            if letter == "y" and len(value) == 2:
                values[letter] = _century(int(value))
    try:
        local = datetime.datetime(
            values.get("y", 1970),
            values.get("M", 1),
            values.get("d", 1),
            values.get("H", 0),
            values.get("m", 0),
            values.get("s", 0),
            values.get("S", 0) * 1000,
            tzinfo=datetime.UTC,
        )
    except ValueError as error:
        raise DataError(f"Could not parse timestamp: {text!r}: {error}") from error
    return local - shift


def _century(year: int) -> int:
    """Return a year of two digits as Java does: at most 20 years ahead."""
    latest = datetime.datetime.now(datetime.UTC).year + 20
    return latest - (latest - year) % 100


def _shift(zone: str) -> datetime.timedelta:
    if zone in ("Z", "UTC", "GMT"):
        return datetime.timedelta()
    digits = zone[1:].replace(":", "")
    shift = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -shift if zone[0] == "-" else shift
