"""Java's properties format: what `java.util.Properties` loads and stores.

`key=value` lines; `:` or white space separate as well. `#` and `!` begin a comment line. A backslash escapes
the next character, names a control character or (`\\uXXXX`) a code unit, and at the end of a line joins it
with the next. Files are ISO 8859-1: everything else is written escaped.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CONTROL_NAMES: Final = {character: name for name, character in _CONTROL.items()}
_BLANKS: Final = " \t\f"
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


class Property(NamedTuple):
    """A pair, and the number of the line it begins in, counted from 1."""

    line: int
    key: str
    value: str


class MalformedProperties(ValueError):
    """A line is not in the format. Only a `\\u` without four hexadecimal digits is that wrong."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


def iter_properties(text: bytes) -> Iterator[Property]:
    """Yield the pairs of a file in order. A key may occur twice: in Java the last one counts."""
    return iter_text_properties(text.decode("iso-8859-1"))


def iter_text_properties(text: str) -> Iterator[Property]:
    """Yield the pairs of a file whose encoding is another one, as Java's readers do."""
    for number, line in _logical_lines(text):
        key_end = _find_key_end(line)
        rest = line[key_end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        yield Property(number, _unescape(line[:key_end], number), _unescape(rest, number))


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the bytes of a properties file, without the date comment that Java adds."""
    lines = [f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in properties.items()]
    return "".join(lines).encode("ascii")


def encode_settings(settings: Mapping[str, str], remark: str = "") -> bytes:
    """Return a file of settings for people to read: nothing is escaped that need not be.

    A value may have several lines, such as a key in PEM form. Java reads the same from it.
    """
    lines = [f"# {line}\n" for line in remark.splitlines()]
    lines += [f"{_escape(key, is_key=True)}={_escape(value, '')}\n" for key, value in settings.items()]
    return "".join(lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines; leave out blank lines and comments."""
    joined = ""
    first_number = 0
    natural_lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, natural in enumerate(natural_lines, start=1):
        line = natural.lstrip(_BLANKS)
        if not joined:
            if not line or line[0] in "#!":
                continue
            first_number = number
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        joined += line[:-1] if is_continued else line
        if not is_continued:
            yield first_number, joined
            joined = ""
    if joined:
        yield first_number, joined


def _find_key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                units.append(_code_unit(text[position : position + 4], line))
                position += 4
                continue
            character = _CONTROL.get(character, character)
        units.append(character)
    # Characters beyond the first plane are written as two code units, which have to be put together again.
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_unit(digits: str, line: int) -> str:
    if len(digits) != 4 or not set(digits) <= _HEX_DIGITS:
        # The digits may be part of a secret.
        raise MalformedProperties(line, "a \\u without four hexadecimal digits")
    return chr(int(digits, 16))


def _escape(text: str, signs: str = "=:#!", *, is_key: bool = False) -> str:
    escaped: list[str] = []
    for position, character in enumerate(text):
        if character in _CONTROL_NAMES:
            escaped.append("\\" + _CONTROL_NAMES[character])
        elif character == "\\" or character in signs or (character == " " and (is_key or position == 0)):
            escaped.append("\\" + character)
        elif " " <= character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            escaped += [f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2)]
    return "".join(escaped)
