"""Options of Confluent's JDBC connectors that are no keys here: which are refused, and which do nothing.

A value that asks for what happens here anyway is taken.
"""

from typing import Final

from ottla.connect.plugins import Unsupported

_BOTH: Final = {
    "dialect.name": Unsupported(
        "the dialect follows from connection.url", ("PostgreSqlDatabaseDialect", "SqliteDatabaseDialect")
    ),
    "quote.sql.identifiers": Unsupported("names are always quoted", ("always",)),
    "table.types": Unsupported("only tables are supported, and no views", ("TABLE",)),
    "jdbc.credentials.provider.": Unsupported("use a config provider, or connection.password"),
    "connection.": Unsupported("put parameters of the driver into connection.url"),
}
_NEEDLESS: Final = ("connection.attempts", "connection.backoff.ms", "date.calendar.system")

SOURCE_UNSUPPORTED: Final = {
    **_BOTH,
    "catalog.pattern": Unsupported("name the tables in table.whitelist"),
    "schema.pattern": Unsupported("use table.include.list, as in schema\\..*"),
    "db.timezone": Unsupported("times are read in UTC", ("UTC",)),
    "numeric.precision.mapping": Unsupported("use the transformation Cast", ("false",)),
    "numeric.mapping": Unsupported("use the transformation Cast", ("none",)),
    "timestamp.granularity": Unsupported("use the transformation TimestampConverter", ("connect_logical",)),
    "timestamp.columns.mapping": Unsupported("use a connector for each table, with timestamp.column.name"),
    "incrementing.column.mapping": Unsupported(
        "use a connector for each table, with incrementing.column.name"
    ),
    "incrementing.relaxed.monotonic": Unsupported(
        "use mode=timestamp+incrementing and timestamp.delay.interval.ms", ("false",)
    ),
    "query.suffix": Unsupported("put it into query"),
    "transaction.isolation.mode": Unsupported("set it in the database", ("default", "read_committed")),
}
SOURCE_NEEDLESS: Final = frozenset(
    (
        *_NEEDLESS,
        "validate.non.null",
        "max.buffer.size",
        "poll.linger.ms",
        "query.retry.attempts",
        "table.monitoring.startup.polling.limit.ms",
    )
)
SINK_UNSUPPORTED: Final = {
    **_BOTH,
    "db.timezone": Unsupported("times are written in UTC", ("UTC",)),
    "date.timezone": Unsupported("dates have no zone", ("db_timezone", "utc")),
    "timestamp.precision.mode": Unsupported("times keep their milliseconds", ("milliseconds",)),
    "timestamp.fields.list": Unsupported("use the transformation TimestampConverter"),
    "replace.null.with.default": Unsupported("set it for the converter", ("true",)),
    "string.output.value.column.name": Unsupported("use the transformation HoistField"),
}
SINK_NEEDLESS: Final = frozenset(
    (*_NEEDLESS, "max.retries", "retry.backoff.ms", "mssql.use.merge.holdlock", "trim.sensitive.log")
)
