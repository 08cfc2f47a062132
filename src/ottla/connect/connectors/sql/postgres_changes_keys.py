"""What can be configured of the connector for changes of PostgreSQL."""

from typing import Final

from ottla.connect.configs.keys import Importance, Key, Kind, all_patterns, at_least, one_of
from ottla.connect.connectors.sql.postgres_values import Decimals, Precision

_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM

KEYS: Final = (
    Key("database.hostname", Kind.STRING, "The host of the server."),
    Key("database.port", Kind.INT, "The port of the server.", 5432),
    Key("database.user", Kind.STRING, "A user who may use logical decoding."),
    Key("database.password", Kind.PASSWORD, "The password of the user.", None),
    Key("database.dbname", Kind.STRING, "The database."),
    Key("database.sslmode", Kind.STRING, "Whether to use TLS, by the names of PostgreSQL.", "", _MEDIUM),
    Key("database.sslcert", Kind.STRING, "The certificate of the client, as PEM.", "", _MEDIUM),
    Key("database.sslkey", Kind.STRING, "The key of the certificate, as PEM.", "", _MEDIUM),
    Key("database.sslpassword", Kind.PASSWORD, "The password of the key.", None, _MEDIUM),
    Key("database.sslrootcert", Kind.STRING, "The authorities of the server, as PEM.", "", _MEDIUM),
    Key("topic.prefix", Kind.STRING, "The topic of a table is this, its schema and its name, with dots."),
    Key(
        "table.include.list",
        Kind.LIST,
        "Patterns of tables, as schema.table. Empty: all.",
        [],
        check=all_patterns,
    ),
    Key("table.exclude.list", Kind.LIST, "Patterns of tables not to follow.", [], check=all_patterns),
    Key("schema.include.list", Kind.LIST, "Patterns of schemas. Empty: all.", [], check=all_patterns),
    Key("schema.exclude.list", Kind.LIST, "Patterns of schemas not to follow.", [], check=all_patterns),
    Key(
        "column.include.list",
        Kind.LIST,
        "Patterns of columns that rows have, as schema.table.column. Empty: all. Keys have all of theirs.",
        [],
        _MEDIUM,
    ),
    Key("column.exclude.list", Kind.LIST, "Patterns of columns that rows do not have.", [], _MEDIUM),
    Key("slot.name", Kind.STRING, "The replication slot. It is made if it is not there.", "debezium"),
    Key(
        "slot.drop.on.stop",
        Kind.BOOLEAN,
        "Whether the slot is dropped when the task stops. Changes are lost then: only for tests.",
        False,
        _LOW,
    ),
    Key(
        "publication.name", Kind.STRING, "The publication. It is made if it is not there.", "dbz_publication"
    ),
    Key(
        "publication.autocreate.mode",
        Kind.STRING,
        "filtered: the publication gets the tables that are followed. all_tables: it gets all, which needs a "
        "superuser. disabled: it must have them.",
        "filtered",
        _MEDIUM,
        check=one_of("filtered", "all_tables", "disabled"),
    ),
    Key(
        "skipped.operations",
        Kind.LIST,
        "Changes that are left out: c, u, d, or t for TRUNCATE. none: all changes are records.",
        ["t"],
        _MEDIUM,
    ),
    Key(
        "snapshot.fetch.size",
        Kind.INT,
        "How many of the rows that are there are read at once.",
        2000,
        _MEDIUM,
        check=at_least(1),
    ),
    Key(
        "plugin.name",
        Kind.STRING,
        "The plugin of logical decoding: pgoutput, which PostgreSQL has from version 10 on.",
        "pgoutput",
        _MEDIUM,
        check=one_of("pgoutput"),
    ),
    Key(
        "snapshot.mode",
        Kind.STRING,
        "initial: the rows that are there, then changes. no_data or never: only changes. initial_only: only "
        "the rows that are there.",
        "initial",
        _MEDIUM,
        check=one_of("initial", "no_data", "never", "initial_only"),
    ),
    Key(
        "time.precision.mode",
        Kind.STRING,
        "adaptive: times are numbers, with microseconds if the column has them. adaptive_time_microseconds: "
        "the same, with times of a day always in microseconds. connect: times are Connect's own types, in "
        "milliseconds.",
        Precision.ADAPTIVE.value,
        _MEDIUM,
        check=one_of(*(item.value for item in Precision)),
    ),
    Key(
        "decimal.handling.mode",
        Kind.STRING,
        "precise: decimals are Connect's own, or text if the column has no scale. double: numbers, which may "
        "lose digits. string: text.",
        Decimals.PRECISE.value,
        _MEDIUM,
        check=one_of(*(item.value for item in Decimals)),
    ),
    Key(
        "heartbeat.interval.ms",
        Kind.LONG,
        "How often a record says that the connector lives, in the topic of topic.heartbeat.prefix and "
        "topic.prefix. 0: never.",
        0,
        _LOW,
        check=at_least(0),
    ),
    Key(
        "heartbeat.action.query",
        Kind.STRING,
        "A statement that is run with each heartbeat, so that a database that nobody changes has a change.",
        "",
        _LOW,
    ),
    Key(
        "topic.heartbeat.prefix",
        Kind.STRING,
        "What the name of the topic for heartbeats begins with.",
        "__debezium-heartbeat",
        _LOW,
    ),
    Key(
        "tombstones.on.delete",
        Kind.BOOLEAN,
        "Whether a deletion is followed by a record without a value, for compaction.",
        True,
        _MEDIUM,
    ),
    Key(
        "poll.interval.ms",
        Kind.LONG,
        "How long to wait for a change before the task looks for other work.",
        500,
        _LOW,
        check=at_least(1),
    ),
    Key(
        "max.batch.size",
        Kind.INT,
        "How many changes are read at once. A transaction of the database is one of the topic, also if it is "
        "larger.",
        2048,
        _LOW,
        check=at_least(1),
    ),
)
