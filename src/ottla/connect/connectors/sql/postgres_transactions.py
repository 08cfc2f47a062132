"""Transactions of PostgreSQL's log, message by message, as records.

The server sends a transaction when it is committed. A large one comes in pieces, and its records are returned
as they come: nothing holds all of it. The position of its records says that all of it was read, so the
transaction of the producer must not end before.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.connect.connectors.sql.pgoutput import Begin, Change, Commit, Message, Relation, Truncate
from ottla.connect.connectors.sql.postgres_records import Moment, TableRecords
from ottla.connect.connectors.sql.replication_stream import ReadTo
from ottla.connect.data.record import Record
from ottla.connect.data.schema import to_ms

_LSN: Final = "lsn"
_TRANSACTION: Final = "txId"
_SNAPSHOT: Final = "snapshot_txns"
_SNAPSHOT_END: Final = "snapshot_end_lsn"
_POSTGRES_EPOCH: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class Visible(NamedTuple):
    """Which transactions the rows that were read contain."""

    lowest: int
    highest: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Visible":
        """Read what PostgreSQL says of a snapshot."""
        lowest, highest, running = text.split(":")
        return cls(int(lowest), int(highest), frozenset(int(part) for part in running.split(",") if part))

    def has(self, xid: int) -> bool:
        """Say whether a transaction was committed before the rows were read. The log has 32 bits of it."""
        full = self.highest + ((xid - self.highest + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        return full < self.lowest or (full < self.highest and full not in self.running)


@dataclass
class Progress:
    """How far the topic is: kept with each record."""

    lsn: int = 0
    """Transactions that were committed before this place are in the topic."""
    visible: str | None = None
    """The snapshot in which the first rows were read, while a transaction may come that they have already."""
    visible_until: int = 0
    """From here on in the log the first rows have no transaction."""

    @classmethod
    def of(cls, offset: Mapping[str, Any], log_end_lsn: Callable[[], int]) -> "Progress":
        """Return what an offset says. `log_end_lsn` is where the log ends now."""
        progress = cls(int(offset[_LSN]), offset.get(_SNAPSHOT))
        if progress.visible is not None:
            # The end was not always kept. What the rows have was committed before now in any case.
            progress.visible_until = int(offset.get(_SNAPSHOT_END) or log_end_lsn())
        return progress

    def offset(self, lsn: int, xid: int | None = None) -> dict[str, Any]:
        """Return the offset of a record: all before a place was read."""
        offset: dict[str, Any] = {_LSN: lsn}
        if xid is not None:
            offset[_TRANSACTION] = xid
        if self.visible is not None:
            offset |= {_SNAPSHOT: self.visible, _SNAPSHOT_END: self.visible_until}
        return offset

    def has(self, begin: Begin) -> bool:
        """Say whether the topic has a transaction already."""
        if begin.commit_lsn < self.lsn:
            return True
        if self.visible is not None and begin.commit_lsn >= self.visible_until:
            # Transactions come in the order of their commits. No later one can be.
            self.visible = None
        return self.visible is not None and Visible.parse(self.visible).has(begin.xid)


def is_position(offset: Mapping[str, Any] | None) -> bool:
    """Say whether an offset is one of this connector."""
    return offset is not None and isinstance(offset.get(_LSN), int)


def split_at_begin(
    messages: Sequence[Message | ReadTo | None],
) -> tuple[list[Message | ReadTo | None], list[Message | ReadTo | None]]:
    """Return messages up to a place where nothing is open, and the begun transaction behind it.

    Where many large transactions wait, a number of messages hardly ever ends with one. Their records would
    be one transaction of the producer, until that takes too long. Without the end of any transaction, all
    messages are to be taken: a large one comes in pieces.
    """
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case Commit():
                break
            case Begin() if any(isinstance(item, Commit) for item in messages[:place]):
                return list(messages[:place]), list(messages[place:])
    return list(messages), []


class Transactions:
    """Reads one message after the other. `find` says what makes the records of a table: None, if nothing."""

    def __init__(
        self, progress: Progress, skipped: Iterable[str], find: Callable[[Relation], TableRecords | None]
    ) -> None:
        self._progress = progress
        self._skipped = frozenset(skipped)
        self._find = find
        self._tables: dict[int, TableRecords | None] = {}
        """By the number of the table. None: it is not followed."""
        self._at: Moment | None = None
        """Of the transaction whose end did not come yet. None: there is none, or the topic has it."""
        self._is_open = False
        self.is_within = False
        """Whether records of a transaction were returned whose end did not come yet."""
        self.read_to_lsn = 0
        """How far the server need not send again, once the records so far are in the topic."""

    def take(self, message: Message | ReadTo | None) -> list[Record]:
        """Return the records that a message stands for."""
        match message:
            case Relation():
                self._learn(message)
            case Begin():
                self._begin(message)
            case Change() if message.kind not in self._skipped:
                return self._records([message.relation_oid], lambda table, at: table.of_change(message, at))
            case Truncate() if "t" not in self._skipped:
                return self._records(message.relation_oids, lambda table, at: [table.of_truncate(at)])
            case Commit():
                self._end(message)
            case ReadTo() if not self._is_open:
                self.read_to_lsn = max(self.read_to_lsn, message.lsn)
        return []

    def _learn(self, relation: Relation) -> None:
        """Take note of a table, as the server has decoded it: it may have changed since, or be gone.

        It comes again when something has changed that it need not say: another primary key, for example.
        """
        self._tables[relation.oid] = self._find(relation)

    def _begin(self, begin: Begin) -> None:
        self._is_open = True
        if self._progress.has(begin):
            self._at = None
            return
        when_ms = to_ms(_POSTGRES_EPOCH + datetime.timedelta(microseconds=begin.commit_us))
        # The next transaction is committed behind this place, wherever this one ends.
        behind = begin.commit_lsn + 1
        self._at = Moment(begin.commit_lsn, begin.xid, when_ms, self._progress.offset(behind, begin.xid))

    def _records(
        self, oids: Iterable[int], make: Callable[[TableRecords, Moment], list[Record]]
    ) -> list[Record]:
        if self._at is None:
            return []
        tables = [table for oid in oids if (table := self._tables.get(oid)) is not None]
        records = [record for table in tables for record in make(table, self._at)]
        self.is_within = self.is_within or bool(records)
        return records

    def _end(self, commit: Commit) -> None:
        if self._at is not None:
            self._progress.lsn = max(self._progress.lsn, self._at.lsn + 1)
        self._at = None
        self._is_open = self.is_within = False
        self.read_to_lsn = max(self.read_to_lsn, commit.end_lsn)
