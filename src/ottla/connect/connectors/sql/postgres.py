"""PostgreSQL, with psycopg."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from ottla.connect.connectors.sql.database import (
    Check,
    Column,
    DatabaseError,
    DatabaseGone,
    Row,
    RowRefused,
    Statements,
)
from ottla.connect.connectors.sql.postgres_values import (
    MODIFIER_BASE,
    NUMERIC_OID,
    SESSION,
    from_text,
    schema_of,
)
from ottla.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type, optional

TextRow = tuple[str | None, ...]
_LIMIT_EXCEEDED: Final = "54"
_NAME: Final = re.compile(r'"[^"]*"')
_TYPES: Final = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.BYTES: "BYTEA",
}
_LOGICAL: Final = {DECIMAL: "DECIMAL", DATE: "DATE", TIME: "TIME", TIMESTAMP: "TIMESTAMP"}


class PostgresDatabase:
    """A database of PostgreSQL."""

    placeholder = "%s"
    for_update = "FOR UPDATE"

    def __init__(self, settings: Mapping[str, str]) -> None:
        try:
            # Each statement is a transaction, unless one is begun.
            self._connection = psycopg.connect(**settings, autocommit=True, connect_timeout=10)  # type: ignore[arg-type]
            for statement in SESSION:
                self._connection.execute(statement)
        except psycopg.Error as error:
            raise DatabaseGone(f"PostgreSQL cannot be reached: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def tables(self) -> list[str]:
        """Return the names of all tables of users."""
        statement = (
            "SELECT CASE WHEN schemaname = 'public' THEN tablename ELSE schemaname || '.' || tablename END "
            "FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        return [row[0] for row in self.query(statement)[1]]

    def columns(self, table: str) -> list[Column]:
        """Return the columns of a table."""
        statement = (
            "SELECT a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull, COALESCE(i.indisprimary, false) "
            "FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
            # Behind the columns of its key an index may include others.
            "AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]) "
            "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        return [
            Column(name, _nullable(schema_of(oid, modifier), is_null=not not_null), is_key)
            for name, oid, modifier, not_null, is_key in self.query(statement, (_regclass(table),))[1]
        ]

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows of a query."""
        cursor = self._execute(statement, parameters)
        rows: list[Row] = list(cursor.fetchall()) if cursor.description is not None else []
        return _columns(cursor), rows

    def texts(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[TextRow]]:
        """Return the columns and rows of a query, with the text of each value as the server shows it."""
        cursor = self._execute(statement, parameters)
        result = cursor.pgresult
        assert result is not None, "it was executed"
        return _columns(cursor), [
            tuple(_text(result.get_value(row, place)) for place in range(result.nfields))
            for row in range(result.ntuples)
        ]

    def read(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[TextRow]]:
        """Return the columns and rows of a query, for `typed`."""
        return self.texts(statement, parameters)

    def typed(self, schema: Schema, value: str | None) -> Any:
        """Return a value that was read. Raises DataError."""
        return None if value is None else from_text(schema, value)

    def _execute(self, statement: str, parameters: Sequence[Any]) -> "psycopg.Cursor[Any]":
        try:
            return self._connection.execute(statement.encode(), parameters or None)
        except psycopg.OperationalError as error:
            raise DatabaseGone(f"PostgreSQL does not answer: {error}") from error
        except psycopg.Error as error:
            raise DatabaseError(f"PostgreSQL refused {statement!r}: {error}") from error

    def transact(self, statements: Statements, check: Check | None = None) -> None:
        """Run statements in one transaction."""
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                if check is not None:
                    check()
                for statement, rows in statements:
                    if any(rows):
                        cursor.executemany(with_parameters(statement), rows)
                    else:
                        cursor.execute(statement.encode())
        except psycopg.Error as error:
            raise refusal_of(error) from error

    def type_name(self, schema: Schema) -> str:
        """Return the type of a column."""
        return _LOGICAL.get(schema.name or "") or _TYPES.get(schema.type, "TEXT")

    def to_parameter(self, _schema: Schema | None, value: Any) -> Any:
        """Return a value as a parameter."""
        return value


def refusal_of(error: psycopg.Error) -> DatabaseError:
    """Return what an error means for rows that were to be written."""
    is_final = isinstance(error, psycopg.DataError | psycopg.IntegrityError)
    # A limit, such as that of a value in an index, is an error of the server, and yet the row's fault.
    if is_final or (error.sqlstate or "").startswith(_LIMIT_EXCEEDED):
        return RowRefused(f"PostgreSQL refused the rows: {error}")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseGone(f"PostgreSQL does not answer: {error}")
    return DatabaseError(f"PostgreSQL refused the rows: {error}")


def with_parameters(statement: str) -> bytes:
    """Return a statement that has parameters as psycopg reads it: in names, `%` stands for itself."""
    return _NAME.sub(lambda name: name[0].replace("%", "%%"), statement).encode()


def _nullable(schema: Schema, *, is_null: bool) -> Schema:
    return optional(schema) if is_null else schema


def _regclass(table: str) -> str:
    return sql.Identifier(*table.split(".")).as_string(None)


def _columns(cursor: "psycopg.Cursor[Any]") -> list[Column]:
    described = cursor.description or ()
    return [Column(item.name, optional(schema_of(item.type_code, _modifier(item)))) for item in described]


def _modifier(item: Any) -> int:
    """Return the modifier of a column of a result: psycopg tells precision and scale apart."""
    if item.type_code == NUMERIC_OID and item.scale is not None:
        return int(item.scale) + MODIFIER_BASE
    return -1


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
