"""SQLite, with the driver of the standard library."""

import datetime
import re
import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from ottla.connect.connectors.sql.database import (
    Check,
    Column,
    DatabaseError,
    DatabaseGone,
    Row,
    RowRefused,
    Statements,
    quoted,
)
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT64,
    INT64,
    STRING,
    TIMESTAMP,
    Schema,
    Type,
    decimal_schema,
    optional,
)
from ottla.connect.errors import DataError

_BUSY_S: Final = 30.0
_FINAL: Final = (
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    sqlite3.DataError,
    OverflowError,
)
"""Errors that a row meets each time. A statement with a NUL is an error of the program to SQLite."""
_DECIMAL: Final = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*\d+\s*,\s*(\d+)\s*\)", re.IGNORECASE)
# The first that the declared type contains counts, as in SQLite's own rules.
_AFFINITIES: Final = (
    ("INT", INT64),
    ("BOOL", BOOLEAN),
    ("CHAR", STRING),
    ("CLOB", STRING),
    ("TEXT", STRING),
    ("BLOB", BYTES),
    ("REAL", FLOAT64),
    ("FLOA", FLOAT64),
    ("DOUB", FLOAT64),
    ("NUMERIC", FLOAT64),
    ("DECIMAL", FLOAT64),
)
_TYPES: Final = {
    Type.BOOLEAN: "INTEGER",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "REAL",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
}


class SqliteDatabase:
    """A file of SQLite."""

    placeholder = "?"
    for_update = ""

    def __init__(self, path: str) -> None:
        try:
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            raise DatabaseGone(f"the database {path} cannot be opened: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tables(self) -> list[str]:
        """Return the names of all tables of users."""
        statement = (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        )
        return [row[0] for row in self.query(statement)[1]]

    def columns(self, table: str) -> list[Column]:
        """Return the columns of a table."""
        rows = self._connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
        return [
            Column(name, _schema(kind) if not_null or key else optional(_schema(kind)), bool(key))
            for _, name, kind, not_null, _, key in rows
        ]

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows of a query."""
        try:
            cursor = self._connection.execute(statement, parameters)
            rows = cursor.fetchall()
        except sqlite3.Error as error:
            raise DatabaseError(f"SQLite refused {statement!r}: {error}") from error
        names = [item[0] for item in cursor.description or ()]
        return [
            Column(name, _inferred([row[place] for row in rows])) for place, name in enumerate(names)
        ], rows

    def read(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows of a query, for `typed`."""
        return self.query(statement, parameters)

    def typed(self, schema: Schema, value: Any) -> Any:
        """Return a value that was read. Raises DataError."""
        try:
            return typed(schema, value)
        except (ValueError, ArithmeticError, AttributeError, TypeError) as error:
            raise DataError(f"{value!r} cannot be converted to {schema.name or schema.type}") from error

    def transact(self, statements: Statements, check: Check | None = None) -> None:
        """Run statements in one transaction. It locks the file from its beginning on."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise DatabaseGone(f"SQLite cannot begin a transaction: {error}") from error
        try:
            if check is not None:
                check()
            for statement, rows in statements:
                if any(rows):
                    self._connection.executemany(statement, rows)
                else:
                    self._connection.execute(statement)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            is_final = isinstance(error, _FINAL)
            kind = RowRefused if is_final else DatabaseError
            raise kind(f"SQLite refused the rows: {error}") from error
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def type_name(self, schema: Schema) -> str:
        """Return the type of a column. Times are text, and decimals keep their digits as text."""
        if schema.name == DECIMAL:
            return "TEXT"
        if schema.name is not None and schema.name.startswith("org.apache.kafka.connect.data."):
            return "TEXT"
        return _TYPES.get(schema.type, "INTEGER")

    def to_parameter(self, _schema: Schema | None, value: Any) -> Any:
        """Return a value as a parameter."""
        if isinstance(value, datetime.datetime):
            return value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        if isinstance(value, datetime.date | datetime.time | Decimal):
            return str(value)
        return int(value) if isinstance(value, bool) else value


def _schema(declared: str) -> Schema:
    scaled = _DECIMAL.search(declared)
    if scaled is not None:
        return decimal_schema(int(scaled[1]))
    return next((schema for word, schema in _AFFINITIES if word in declared.upper()), STRING)


def _inferred(values: list[Any]) -> Schema:
    """Return the schema of a column of a query, of which SQLite knows nothing but its values."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int}:
        return optional(INT64)
    if kinds and kinds <= {int, float}:
        return optional(FLOAT64)
    return optional(BYTES) if kinds == {bytes} else optional(STRING)


def typed(schema: Schema, value: Any) -> Any:
    """Return a value of SQLite as its column declares it: any column may hold anything."""
    if value is None:
        return None
    if schema.name == DECIMAL:
        return round(Decimal(str(value)), int(schema.parameters["scale"]))
    if schema.name == TIMESTAMP:
        return value
    match schema.type:
        case Type.BOOLEAN:
            return bool(value)
        case Type.FLOAT64:
            return float(value)
        case Type.STRING:
            return value if isinstance(value, str) else str(value)
        case Type.BYTES:
            return value.encode() if isinstance(value, str) else value
    return value
