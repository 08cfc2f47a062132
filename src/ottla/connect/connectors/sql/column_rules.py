"""Which columns of a captured table are shown, and which values are cut or masked, by Debezium's options.

A value that is left out or masked is not in the record at all, neither before nor after a change.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ottla.connect.configs.keys import InvalidValue, Kind, parse
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config
from ottla.model.patterns import InvalidPattern, compile_pattern

Change = Callable[[str | None], str | None]
"""What becomes of a value. A column may be NULL."""
_TRUNCATE: Final = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
_MASK: Final = re.compile(r"column\.mask\.with\.(\d+)\.chars")
_HASH: Final = re.compile(r"column\.mask\.hash(?P<v2>\.v2)?\.(?P<algorithm>[^.]+)\.with\.salt\.(?P<salt>.+)")
_LISTS: Final = ("column.include.list", "column.exclude.list")
_PREFIXES: Final = ("column.truncate.", "column.mask.")
_LENGTH_MAX: Final = 1_000_000
_JAVA_STREAM: Final = b"\xac\xed\x00\x05"
_SHORT_MAX: Final = 0xFFFF


class ColumnRules:
    """What a configuration says of columns. Columns are named as schema.table.column."""

    def __init__(self, config: Config) -> None:
        self._included = _patterns(config, "column.include.list")
        self._excluded = _patterns(config, "column.exclude.list")
        self._masked = [
            item for name in config if name.startswith(_PREFIXES[1]) for item in _patterns(config, name)
        ]
        self._changes = [
            (_patterns(config, name), change)
            for name in config
            if name.startswith(_PREFIXES) and (change := _change(name)) is not None
        ]

    def shows(self, table: str, column: str) -> bool:
        """Say whether a column is a part of the rows. A key has all of its columns in any case."""
        name = f"{table}.{column}"
        return (not self._included or _fits(self._included, name)) and not _fits(self._excluded, name)

    def masks(self, table: str, column: str) -> bool:
        """Say whether the values of a column are to be hidden."""
        return _fits(self._masked, f"{table}.{column}")

    def change(self, table: str, column: str, length_max: int | None) -> Change | None:
        """Return what is done to the values of a column of text. None: they stay as they are.

        What is written is no longer than the column.
        """
        name = f"{table}.{column}"
        found = [change for patterns, change in self._changes if _fits(patterns, name)]
        if not found:
            return None

        def all_of(text: str | None) -> str | None:
            for change in found:
                text = change(text)
            return text if text is None else text[:length_max]

        return all_of


def column_errors(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the options of columns, with the key of each."""
    if config.get(_LISTS[0]) and config.get(_LISTS[1]):
        for name in _LISTS:
            yield name, f"{_LISTS[0]} and {_LISTS[1]} exclude each other: set one of them"
    for name, text in config.items():
        if not text or not name.startswith((*_LISTS, *_PREFIXES)):
            continue
        if name not in _LISTS:
            try:
                known = _change(name) is not None
            except ConnectError as error:
                yield name, str(error)
                continue
            if not known:
                yield name, f"{name} is not known: use column.truncate.to.N.chars or column.mask.with.N.chars"
        try:
            _patterns(config, name)
        except InvalidPattern as error:
            yield name, str(InvalidValue(name, text, f"Not a regular expression: {error}"))


def _change(name: str) -> Change | None:
    if found := _TRUNCATE.fullmatch(name):
        length = _length(name, found[1])
        return lambda text: None if text is None else text[:length]
    if found := _MASK.fullmatch(name):
        stars = "*" * _length(name, found[1])
        # That there was no value is hidden as well.
        return lambda _text: stars
    if found := _HASH.fullmatch(name):
        return _hashing(found["algorithm"], found["salt"], is_second=found["v2"] is not None)
    return None


def _length(name: str, text: str) -> int:
    length = int(text)
    if length > _LENGTH_MAX:
        raise ConnectError(f"{name} is too long: use {_LENGTH_MAX} characters at most")
    return length


def _hashing(algorithm: str, salt: str, *, is_second: bool) -> Change:
    """Return what replaces a value by its hash, with the bytes that Debezium puts into it."""
    name = algorithm.replace("-", "").lower()
    if name not in hashlib.algorithms_available:
        raise ConnectError(f"the algorithm {algorithm} is not known: use SHA-256, for example")

    def hashed(text: str | None) -> str | None:
        if text is None:
            return None
        data = text.encode() if is_second else _serialized(text)
        return hashlib.new(name, salt.encode() + data).hexdigest()

    return hashed


def _serialized(text: str) -> bytes:
    """Return a text as Java writes an object: the first version of Debezium's hash is of that."""
    data = _java_text(text)
    if len(data) <= _SHORT_MAX:
        return _JAVA_STREAM + b"t" + len(data).to_bytes(2, "big") + data
    return _JAVA_STREAM + b"|" + len(data).to_bytes(8, "big") + data


def _java_text(text: str) -> bytes:
    """Return a text in the modified UTF-8 of Java: halves of a character have three bytes each."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = bytearray()
    for place in range(0, len(units), 2):
        unit = units[place] << 8 | units[place + 1]
        if 0 < unit < 0x80:
            found.append(unit)
        elif unit < 0x800:
            found += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            found += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(found)


def _patterns(config: Mapping[str, str], name: str) -> Sequence[Any]:
    # Debezium ignores case here. A list of columns to hide must not show one for its case.
    return [compile_pattern(f"(?i:{text})") for text in parse(name, Kind.LIST, config.get(name) or "")]


def _fits(patterns: Sequence[Any], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
