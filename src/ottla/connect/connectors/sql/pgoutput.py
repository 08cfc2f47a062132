"""PostgreSQL's logical decoding, as its plugin `pgoutput` writes it (protocol version 1). Bytes only."""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

_BEGIN, _COMMIT, _RELATION, _INSERT, _UPDATE, _DELETE, _TRUNCATE = b"BCRIUDT"
_NEW, _OLD, _KEY = b"NOK"
_NULL, _UNCHANGED, _TEXT = b"nut"
_IGNORED: Final = b"YOM"


class Unchanged(Enum):
    """Stands for a large value that a change has left as it was, and that is not in the log."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Cell = str | None | Unchanged


class InvalidChange(ValueError):
    """Bytes that are not a message of pgoutput."""


class RelationColumn(NamedTuple):
    """A column of a table, as the log knows it."""

    name: str
    type_oid: int
    modifier: int
    is_key: bool


class Relation(NamedTuple):
    """A table, as it was when it was changed."""

    oid: int
    schema: str
    table: str
    columns: tuple[RelationColumn, ...]
    identity: str = "d"
    """What the log has of a row before a change, by PostgreSQL's letters: d the primary key, i an index, f
    all of it, n nothing. With f all columns are marked as its key."""


class Begin(NamedTuple):
    """The beginning of a transaction. They come one after the other, in the order of their commits."""

    commit_lsn: int
    commit_us: int
    """Microseconds since 2000."""
    xid: int


class Commit(NamedTuple):
    """The end of a transaction, and where the log goes on after it."""

    end_lsn: int


@dataclass(frozen=True)
class Change:
    """A row that was inserted, updated or deleted: as it was before, and as it is after."""

    kind: str
    relation_oid: int
    before: tuple[Cell, ...] | None = None
    is_key_only: bool = False
    after: tuple[Cell, ...] | None = None


class Truncate(NamedTuple):
    """Tables that were emptied."""

    relation_oids: tuple[int, ...]


Message = Relation | Begin | Commit | Change | Truncate


def decode(data: bytes) -> Message | None:
    """Read a message. None: it says nothing about rows. Raises InvalidChange."""
    reader = _Reader(data)
    kind = reader.byte()
    if kind == _BEGIN:
        return Begin(*reader.numbers(">QqI"))
    if kind == _COMMIT:
        _flags, _commit_lsn, end_lsn, _time = reader.numbers(">BQQq")
        return Commit(end_lsn)
    if kind == _RELATION:
        return _relation(reader)
    if kind in (_INSERT, _UPDATE, _DELETE):
        return _change(kind, reader)
    if kind == _TRUNCATE:
        count, _options = reader.numbers(">iB")
        return Truncate(tuple(reader.numbers(">I")[0] for _ in range(count)))
    if kind in _IGNORED:
        return None
    raise InvalidChange(f"a message begins with {kind}")


def _relation(reader: "_Reader") -> Relation:
    (oid,) = reader.numbers(">I")
    schema, table = reader.text(), reader.text()
    identity, count = reader.numbers(">Bh")
    columns = []
    for _ in range(count):
        (flags,) = reader.numbers(">b")
        name = reader.text()
        type_oid, modifier = reader.numbers(">Ii")
        columns.append(RelationColumn(name, type_oid, modifier, bool(flags & 1)))
    return Relation(oid, schema, table, tuple(columns), chr(identity))


def _change(kind: int, reader: "_Reader") -> Change:
    (oid,) = reader.numbers(">I")
    before, is_key_only = None, False
    mark = reader.byte()
    if mark in (_OLD, _KEY):
        before, is_key_only = reader.cells(), mark == _KEY
        if kind == _DELETE:
            return Change("d", oid, before, is_key_only)
        mark = reader.byte()
    if mark != _NEW or kind == _DELETE:
        raise InvalidChange("a change has no row")
    return Change("c" if kind == _INSERT else "u", oid, before, is_key_only, reader.cells())


class _Reader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        (number,) = self.numbers(">B")
        return int(number)

    def numbers(self, form: str) -> tuple[int, ...]:
        try:
            found = struct.unpack_from(form, self._data, self._at)
        except struct.error as error:
            raise InvalidChange("a message is cut off") from error
        self._at += struct.calcsize(form)
        return found

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise InvalidChange("a message is cut off")
        data = self._data[self._at : end]
        self._at = end + 1
        return _text(data)

    def cells(self) -> tuple[Cell, ...]:
        (count,) = self.numbers(">h")
        return tuple(self._cell() for _ in range(count))

    def _cell(self) -> Cell:
        kind = self.byte()
        if kind == _NULL:
            return None
        if kind == _UNCHANGED:
            return UNCHANGED
        if kind != _TEXT:
            raise InvalidChange(f"a cell begins with {kind}")
        (length,) = self.numbers(">i")
        data = self._data[self._at : self._at + length]
        if length < 0 or len(data) < length:
            raise InvalidChange("a message is cut off")
        self._at += length
        return _text(data)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidChange("a message has text that is not UTF-8") from error
