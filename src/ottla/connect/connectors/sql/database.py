"""A database as connectors see it, and how its address says which one it is.

Addresses are those of Java's drivers: `jdbc:sqlite:/path/file.db`, `jdbc:postgresql://host:5432/name`. All
calls block: connectors make them in a thread.
"""

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from ottla.connect.data.schema import EPOCH, Schema
from ottla.connect.errors import ConnectError, DataError

JDBC: Final = "jdbc:"
OFFSETS_TABLE: Final = "ottla_connect_offsets"
"""Where sinks keep their offsets."""
Row = Sequence[Any]
Statements = Sequence[tuple[str, Sequence[Sequence[Any]]]]
Check = Callable[[], None]


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    schema: Schema
    is_key: bool = False


class Database(Protocol):
    """An open database. Raises DatabaseError."""

    placeholder: str
    """How a parameter is written in a statement."""
    for_update: str
    """What a query ends with whose rows nobody else may change until the end of the transaction."""

    def tables(self) -> list[str]:
        """Return the names of all tables of users."""

    def columns(self, table: str) -> list[Column]:
        """Return the columns of a table. None at all: there is no such table."""

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows of a query, in a transaction of its own."""

    def read(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], Sequence[Row]]:
        """Return the columns and rows of a query, with values for `typed`."""

    def typed(self, schema: Schema, value: Any) -> Any:
        """Return a value that was read, as its schema says. Raises DataError."""

    def transact(self, statements: Statements, check: "Check | None" = None) -> None:
        """Run statements, each for many rows of parameters, in one transaction, which `check` begins."""

    def type_name(self, schema: Schema) -> str:
        """Return the type of a column for values of a schema."""

    def to_parameter(self, schema: Schema | None, value: Any) -> Any:
        """Return a value as a parameter."""

    def close(self) -> None:
        """Close it."""


class DatabaseError(ConnectError):
    """A statement that the database did not take, or a database that cannot be reached."""


class DatabaseGone(DatabaseError):
    """A database that cannot be reached. It may be back later."""


class RowRefused(DatabaseError):
    """A row that the database does not take, and never will."""


def named_row(
    table: str,
    columns: Sequence[tuple[str, Schema]],
    cells: Sequence[Any],
    keys: Collection[str],
    typed: Callable[[Schema, Any], Any],
) -> dict[str, Any]:
    """Return the values of a row by their columns. Raises DataError, which names row and column."""
    row = {}
    for (name, schema), cell in zip(columns, cells, strict=True):
        try:
            row[name] = typed(schema, cell)
        except DataError as error:
            named = ", ".join(
                f"{column}={found}"
                for (column, _), found in zip(columns, cells, strict=True)
                if column in keys
            )
            of_row = f" of the row {named}" if named else ""
            raise DataError(f"column {name!r}{of_row} of {table!r}: {error}") from error
    return row


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL, part by part: schema.table."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def open_database(config: Mapping[str, str]) -> Database:
    """Open the database that `connection.url` names. Raises ConnectError."""
    url = config["connection.url"]
    kind, _, rest = url.removeprefix(JDBC).partition(":")
    if kind == "sqlite":
        from ottla.connect.connectors.sql.sqlite import SqliteDatabase

        return SqliteDatabase(rest.partition("?")[0])
    if kind == "postgresql":
        try:
            from ottla.connect.connectors.sql.postgres import PostgresDatabase
        except ImportError as error:
            raise ConnectError(
                f"the package {error.name!r} is missing: install it with pip install 'ottla[connect]'"
            ) from error
        return PostgresDatabase(postgres_settings(url, config))
    raise ConnectError(f"connection.url is {url!r}: only jdbc:sqlite: and jdbc:postgresql: are supported")


def check_url(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Say whether `connection.url` names a database that there is a driver for."""
    url = config["connection.url"]
    if url.startswith((f"{JDBC}sqlite:", f"{JDBC}postgresql:")):
        return {}
    problem = "Only jdbc:sqlite: and jdbc:postgresql: are supported"
    return {"connection.url": [f"Invalid value {url} for configuration connection.url: {problem}"]}


def postgres_settings(url: str, config: Mapping[str, str]) -> dict[str, str]:
    """Translate the address of Java's driver to the settings of a connection."""
    parts = urlsplit(url.removeprefix(JDBC))
    given = dict(parse_qsl(parts.query))
    settings = {
        "host": parts.hostname or "localhost",
        "port": str(parts.port or 5432),
        "dbname": parts.path.lstrip("/") or "postgres",
        "user": config.get("connection.user") or given.get("user", ""),
        "password": config.get("connection.password") or given.get("password", ""),
        "sslmode": given.get("sslmode", ""),
    }
    return {name: value for name, value in settings.items() if value}


def as_datetime(value: Any) -> datetime.datetime:
    """Return a time, also of a database that keeps times as text or as milliseconds."""
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    if isinstance(value, int | float):
        return EPOCH + datetime.timedelta(milliseconds=value)
    if isinstance(value, str):
        try:
            return as_datetime(datetime.datetime.fromisoformat(value))
        except ValueError as error:
            raise ConnectError(f"{value!r} is not a time: use YYYY-MM-DD HH:MM:SS") from error
    raise ConnectError(f"{value!r} is not a time")
