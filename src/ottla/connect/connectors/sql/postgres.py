"""PostgreSQL, with psycopg."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.types.string import TextLoader

from ottla.connect.connectors.sql.database import (
    Check,
    Column,
    DatabaseError,
    DatabaseGone,
    Row,
    RowRefused,
    Statements,
)
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    Schema,
    Type,
    decimal_schema,
    optional,
)

_BOOL, _BYTEA, _INT8, _INT2, _INT4 = 16, 17, 20, 21, 23
_FLOAT4, _FLOAT8, _DATE, _TIME, _TIMESTAMP, _TIMESTAMPTZ, _NUMERIC = 700, 701, 1082, 1083, 1114, 1184, 1700
_SCHEMAS: Final = {
    _BOOL: BOOLEAN,
    _BYTEA: BYTES,
    _INT2: Schema(Type.INT16),
    _INT4: INT32,
    _INT8: INT64,
    _FLOAT4: Schema(Type.FLOAT32),
    _FLOAT8: FLOAT64,
    _DATE: DATE_SCHEMA,
    _TIME: TIME_SCHEMA,
    _TIMESTAMP: TIMESTAMP_SCHEMA,
    _TIMESTAMPTZ: TIMESTAMP_SCHEMA,
}
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
# PostgreSQL keeps the scale of a number in the lower half of the modifier, four above zero.
_MODIFIER_BASE: Final = 4
# Types without a counterpart: they travel as the text that PostgreSQL shows.
_AS_TEXT: Final = ("json", "jsonb", "uuid", "interval", "inet", "cidr")


def schema_of(oid: int, modifier: int) -> Schema:
    """Return the schema of a type of PostgreSQL."""
    if oid == _NUMERIC and modifier >= _MODIFIER_BASE:
        return decimal_schema((modifier - _MODIFIER_BASE) & 0x7FF)
    # Numbers without a scale can have any number of digits, which only text keeps.
    return _SCHEMAS.get(oid, STRING)


class PostgresDatabase:
    """A database of PostgreSQL."""

    placeholder = "%s"
    for_update = "FOR UPDATE"

    def __init__(self, settings: Mapping[str, str]) -> None:
        try:
            # Each statement is a transaction, unless one is begun.
            self._connection = psycopg.connect(**settings, autocommit=True, connect_timeout=10)  # type: ignore[arg-type]
            self._connection.execute("SET TIME ZONE 'UTC'")
        except psycopg.Error as error:
            raise DatabaseGone(f"PostgreSQL cannot be reached: {error}") from error
        for name in _AS_TEXT:
            self._connection.adapters.register_loader(name, TextLoader)

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
            "SELECT a.attname, a.atttypid::int, a.atttypmod, a.attnotnull, COALESCE(i.indisprimary, false) "
            "FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
            "AND a.attnum = ANY(i.indkey) WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 "
            "AND NOT a.attisdropped ORDER BY a.attnum"
        )
        return [
            Column(name, _nullable(schema_of(oid, modifier), is_null=not not_null), is_key)
            for name, oid, modifier, not_null, is_key in self.query(statement, (_regclass(table),))[1]
        ]

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Row]]:
        """Return the columns and rows of a query."""
        try:
            cursor = self._connection.execute(statement.encode(), parameters or None)
            rows: list[Row] = list(cursor.fetchall()) if cursor.description is not None else []
        except psycopg.OperationalError as error:
            raise DatabaseGone(f"PostgreSQL does not answer: {error}") from error
        except psycopg.Error as error:
            raise DatabaseError(f"PostgreSQL refused {statement!r}: {error}") from error
        described = cursor.description or ()
        return [
            Column(item.name, optional(schema_of(item.type_code, _modifier(item)))) for item in described
        ], rows

    def transact(self, statements: Statements, check: Check | None = None) -> None:
        """Run statements in one transaction."""
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                if check is not None:
                    check()
                for statement, rows in statements:
                    if any(rows):
                        cursor.executemany(statement.encode(), rows)
                    else:
                        cursor.execute(statement.encode())
        except psycopg.OperationalError as error:
            raise DatabaseGone(f"PostgreSQL does not answer: {error}") from error
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            raise RowRefused(f"PostgreSQL refused the rows: {error}") from error
        except psycopg.Error as error:
            raise DatabaseError(f"PostgreSQL refused the rows: {error}") from error

    def type_name(self, schema: Schema) -> str:
        """Return the type of a column."""
        return _LOGICAL.get(schema.name or "") or _TYPES.get(schema.type, "TEXT")

    def to_parameter(self, _schema: Schema | None, value: Any) -> Any:
        """Return a value as a parameter."""
        return value


def _nullable(schema: Schema, *, is_null: bool) -> Schema:
    return optional(schema) if is_null else schema


def _regclass(table: str) -> str:
    return sql.Identifier(*table.split(".")).as_string(None)


def _modifier(item: Any) -> int:
    """Return the modifier of a column of a result: psycopg tells precision and scale apart."""
    if item.type_code == _NUMERIC and item.scale is not None:
        return int(item.scale) + _MODIFIER_BASE
    return -1


def typed(schema: Schema, value: Any) -> Any:
    """Return a value of PostgreSQL for its schema."""
    if value is None:
        return None
    if schema.type is Type.STRING and not isinstance(value, str):
        return str(value)
    if schema.name == DECIMAL and not isinstance(value, Decimal):
        return Decimal(value)
    return bytes(value) if isinstance(value, memoryview) else value
