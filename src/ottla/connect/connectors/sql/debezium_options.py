"""Options of Debezium's connector for PostgreSQL that are no keys here: which are refused, and which do
nothing.

A value that asks for what happens here anyway is taken.
"""

from typing import Final

from ottla.connect.plugins import Unsupported

_FIXED: Final = "there is one form of names"
UNSUPPORTED: Final = {
    "column.propagate.": Unsupported("types of the database are not passed on"),
    "message.key.columns": Unsupported("use the transformation ValueToKey"),
    "signal.": Unsupported("signals and incremental snapshots are not there"),
    "incremental.snapshot.": Unsupported("signals and incremental snapshots are not there"),
    "read.only": Unsupported("signals and incremental snapshots are not there", ("false",)),
    "notification.": Unsupported("follow the status of the connector"),
    "hstore.handling.mode": Unsupported("values of hstore are text"),
    "interval.handling.mode": Unsupported("intervals are text", ("string",)),
    "binary.handling.mode": Unsupported("bytes stay bytes", ("bytes",)),
    "money.fraction.digits": Unsupported("money has the digits of the server", ("2",)),
    "provide.transaction.metadata": Unsupported("changes have their transaction in source", ("false",)),
    "publish.via.partition.root": Unsupported("partitioned tables are followed by their root", ("true",)),
    "publication.": Unsupported("make the publication yourself"),
    "replica.identity.autoset.values": Unsupported("set REPLICA IDENTITY of the tables yourself"),
    "slot.stream.params": Unsupported("options of the plugin are not passed on"),
    "slot.failover": Unsupported("make the slot yourself", ("false",)),
    "snapshot.isolation.mode": Unsupported("rows are read as of one moment", ("repeatable_read",)),
    "snapshot.locking.mode": Unsupported("tables are not locked", ("none",)),
    "snapshot.query.mode": Unsupported("all columns are read", ("select_all",)),
    "snapshot.include.collection.list": Unsupported("use table.include.list"),
    "snapshot.select.statement.overrides": Unsupported("all rows are read"),
    "topic.delimiter": Unsupported(_FIXED, (".",)),
    "topic.naming.strategy": Unsupported("use the transformation RegexRouter"),
    "schema.name.adjustment.mode": Unsupported(_FIXED, ("none",)),
    "field.name.adjustment.mode": Unsupported(_FIXED, ("none",)),
    "event.processing.failure.handling.mode": Unsupported("use errors.tolerance", ("fail",)),
    "skip.messages.without.change": Unsupported("each change is a record", ("false",)),
    "datatype.propagate.source.type": Unsupported("types of the database are not passed on"),
    "flush.lsn.source": Unsupported("the slot moves on after each commit", ("true",)),
    "converters": Unsupported("use transformations"),
    "post.processors": Unsupported("use transformations"),
    "include.unknown.datatypes": Unsupported("types that are not known are text", ("true",)),
}
NEEDLESS: Final = frozenset(
    (
        "database.tcpKeepAlive",
        "database.initial.statements",
        "database.query.timeout.ms",
        "connection.validation.timeout.ms",
        "status.update.interval.ms",
        "max.queue.size",
        "max.queue.size.in.bytes",
        "snapshot.max.threads",
        "snapshot.lock.timeout.ms",
        "snapshot.delay.ms",
        "streaming.delay.ms",
        "retriable.restart.connector.wait.ms",
        "errors.max.retries",
        "slot.max.retries",
        "slot.retry.delay.ms",
        "xmin.fetch.interval.ms",
        "topic.cache.size",
        "topic.transaction",
        "include.schema.changes",
        "include.schema.comments",
        "custom.metric.tags",
        "advanced.metrics.enable",
        "executor.shutdown.timeout.ms",
    )
)
