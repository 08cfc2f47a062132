"""The messages of a replication slot of PostgreSQL, as its server sends them.

The connection belongs to the event loop: nothing waits in a thread, so that many connectors do not wait for
each other. What has arrived and was not read yet is bounded: then the server waits. A status with the
position of the topic is sent regularly, also while nothing is read: the server gives up silent connections.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql
from psycopg.pq import DiagnosticField, ExecStatus

from ottla.connect.connectors.sql.database import DatabaseGone
from ottla.connect.connectors.sql.postgres_values import SESSION
from ottla.connect.errors import ConnectError

_DATA, _KEEPALIVE = b"wk"
_DATA_HEADER: Final = struct.Struct(">cQQq")
_KEEPALIVE_FORM: Final = struct.Struct(">cQqB")
_STATUS_FORM: Final = struct.Struct(">cQQQqB")
_ENDED, _NOTHING_NOW = -1, 0
_IN_USE: Final = b"55006"
_TELL_EVERY_S: Final = 5.0
_TIMEOUT: Final = "SELECT setting::int8 FROM pg_settings WHERE name = 'wal_sender_timeout'"
_TELLS_IN_TIMEOUT: Final = 4
_BUFFERED_BYTES_MAX: Final = 8 << 20
_OPEN_TRIES: Final = 20
_OPEN_PAUSE_S: Final = 0.25
_POSTGRES_EPOCH_S: Final = 946_684_800


class ReadTo(NamedTuple):
    """Says that the server has nothing more up to here."""

    lsn: int


class SlotInUse(DatabaseGone):
    """Another connection reads the slot."""


class ReplicationStream:
    """A connection that follows one slot. It belongs to the event loop that it was opened in."""

    def __init__(self, connection: "psycopg.Connection[Any]", tell_every_s: float) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[bytes | ReadTo] = deque()
        self._arrived_bytes = 0
        self._has_arrived = asyncio.Event()
        self._is_watching = False
        self._confirmed_lsn = 0
        self._error: DatabaseGone | None = None
        self._tell_every_s = tell_every_s
        self._timer = self._loop.call_later(tell_every_s, self._tick)
        self._watch()

    async def read(self, count: int, wait_s: float) -> list[bytes | ReadTo]:
        """Return up to so many messages. None at all: nothing came in this time. Raises DatabaseGone."""
        if not self._arrived:
            self._raise_if_failed()
            self._has_arrived.clear()
            self._receive()
            try:
                async with asyncio.timeout(wait_s):
                    await self._has_arrived.wait()
            except TimeoutError:
                return []
        taken: list[bytes | ReadTo] = []
        while self._arrived and len(taken) < count:
            message = self._arrived.popleft()
            taken.append(message)
            self._arrived_bytes -= _size(message)
        if not taken:
            self._raise_if_failed()
        self._receive()
        return taken

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def confirm(self, lsn: int) -> None:
        """Tell the server that it need not send again what is before a place in its log."""
        if lsn > self._confirmed_lsn:
            self._confirmed_lsn = lsn
            self._tell()

    def close(self) -> None:
        """Close the connection."""
        self._timer.cancel()
        self._unwatch()
        self._connection.close()

    # The socket

    def _watch(self) -> None:
        if not self._is_watching and self._error is None:
            self._is_watching = True
            self._loop.add_reader(self._connection.pgconn.socket, self._receive)

    def _unwatch(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._loop.remove_reader(self._connection.pgconn.socket)

    def _receive(self) -> None:
        """Take what has arrived, as far as there is room."""
        if self._error is not None:
            return
        try:
            self._connection.pgconn.consume_input()
            self._take_messages()
        except psycopg.Error as error:
            self._fail(f"PostgreSQL does not answer: {error}")

    def _take_messages(self) -> None:
        while self._arrived_bytes < _BUFFERED_BYTES_MAX:
            length, data = self._connection.pgconn.get_copy_data(1)
            if length == _NOTHING_NOW:
                self._watch()
                return
            if length == _ENDED:
                said = self._connection.pgconn.get_result()
                reason = "" if said is None else said.error_message.decode(errors="replace").strip()
                self._fail(f"PostgreSQL has ended the replication: {reason or 'no reason was given'}")
                return
            self._take(bytes(data))
        self._unwatch()

    def _take(self, data: bytes) -> None:
        if data[0] == _DATA:
            self._keep(data[_DATA_HEADER.size :])
        elif data[0] == _KEEPALIVE:
            _kind, lsn, _when, wants_answer = _KEEPALIVE_FORM.unpack_from(data)
            self._keep(ReadTo(lsn))
            if wants_answer:
                self._tell()

    def _keep(self, message: bytes | ReadTo) -> None:
        if isinstance(message, ReadTo) and self._arrived and isinstance(self._arrived[-1], ReadTo):
            self._arrived[-1] = message
            return
        self._arrived.append(message)
        self._arrived_bytes += _size(message)
        self._has_arrived.set()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._tell_every_s, self._tick)
        self._tell()
        # With TLS something may be there that the socket does not show.
        if self._is_watching:
            self._receive()

    def _tell(self) -> None:
        if self._error is not None:
            return
        place = self._confirmed_lsn
        now_us = int((time.time() - _POSTGRES_EPOCH_S) * 1_000_000)
        try:
            self._connection.pgconn.put_copy_data(_STATUS_FORM.pack(b"r", place, place, place, now_us, 0))
            self._connection.pgconn.flush()
        except psycopg.Error as error:
            self._fail(f"PostgreSQL does not answer: {error}")

    def _fail(self, reason: str) -> None:
        self._error = DatabaseGone(reason)
        self._unwatch()
        self._has_arrived.set()


def _size(message: bytes | ReadTo) -> int:
    return len(message) if isinstance(message, bytes) else 0


async def open_stream(
    settings: Mapping[str, str], slot: str, publication: str, from_lsn: int
) -> ReplicationStream:
    """Follow a slot. An earlier connection of a task that has died may be there for a moment. Raises
    ConnectError.
    """
    for number in range(_OPEN_TRIES):
        try:
            opened = await asyncio.to_thread(_connect, settings, slot, publication, from_lsn)
        except SlotInUse:
            if number == _OPEN_TRIES - 1:
                raise
            await asyncio.sleep(_OPEN_PAUSE_S)
        else:
            break
    return ReplicationStream(*opened)


def _connect(
    settings: Mapping[str, str], slot: str, publication: str, from_lsn: int
) -> tuple["psycopg.Connection[Any]", float]:
    """Return a connection that replicates, and how often the server must hear from it, in seconds."""
    try:
        connection = psycopg.connect(
            **settings,  # type: ignore[arg-type]
            autocommit=True,
            connect_timeout=10,
            replication="database",
        )
    except psycopg.Error as error:
        raise DatabaseGone(f"PostgreSQL takes no connection for replication: {error}") from error
    try:
        for statement in SESSION:
            connection.execute(statement)
        found = connection.execute(_TIMEOUT).fetchone()
        timeout_s = 0.0 if found is None else found[0] / 1000
        _begin(connection, slot, publication, from_lsn)
    except BaseException:
        connection.close()
        raise
    # 0: it waits for ever.
    return connection, min(_TELL_EVERY_S, timeout_s / _TELLS_IN_TIMEOUT) if timeout_s else _TELL_EVERY_S


def _begin(connection: "psycopg.Connection[Any]", slot: str, publication: str, from_lsn: int) -> None:
    named = sql.Literal(sql.Identifier(publication).as_string(connection)).as_string(connection)
    place = f"{from_lsn >> 32:X}/{from_lsn & 0xFFFFFFFF:X}"
    statement = (
        f"START_REPLICATION SLOT {sql.Identifier(slot).as_string(connection)} LOGICAL {place} "
        f"(proto_version '1', publication_names {named})"
    )
    try:
        answer = connection.pgconn.exec_(statement.encode())
    except psycopg.Error as error:
        raise DatabaseGone(f"PostgreSQL does not answer: {error}") from error
    if answer.status == ExecStatus.COPY_BOTH:
        # A message that does not fit into the socket must not stop the event loop.
        connection.pgconn.nonblocking = 1
        return
    reason = answer.error_message.decode(errors="replace").strip()
    if answer.error_field(DiagnosticField.SQLSTATE) == _IN_USE:
        raise SlotInUse(f"another connection reads the slot {slot!r}: {reason}")
    raise ConnectError(f"PostgreSQL does not begin the replication: {reason}")
