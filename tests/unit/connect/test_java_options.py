"""Configurations of well-known Java connectors: what can be done is taken, and the rest is named."""

import logging

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.configs.validation import check_config, validate
from ottla.connect.errors import RestError
from ottla.connect.settings import WorkerSettings

PLUGINS = all_plugins()
WORKER = WorkerSettings().defaults
JDBC_SOURCE = {
    "name": "c",
    "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "mode": "bulk",
    "topic.prefix": "p-",
}
JDBC_SINK = {
    "name": "c",
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "topics": "t",
}
DEBEZIUM = {
    "name": "c",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "db",
    "database.user": "me",
    "database.dbname": "shop",
    "topic.prefix": "shop",
}


@pytest.mark.parametrize(
    ("config", "option", "value"),
    [
        (JDBC_SOURCE, "numeric.mapping", "best_fit"),
        (JDBC_SOURCE, "db.timezone", "Europe/Prague"),
        (JDBC_SOURCE, "schema.pattern", "sales"),
        (JDBC_SOURCE, "connection.loginTimeout", "10"),
        (JDBC_SINK, "dialect.name", "OracleDatabaseDialect"),
        (JDBC_SINK, "jdbc.credentials.provider.class", "com.example.Vault"),
        (DEBEZIUM, "hstore.handling.mode", "json"),
        (DEBEZIUM, "publish.via.partition.root", "false"),
        (DEBEZIUM, "column.propagate.source.type", "public.users.name"),
        (DEBEZIUM, "signal.data.collection", "public.signals"),
        (DEBEZIUM, "notification.enabled.channels", "log"),
    ],
)
def test_what_is_not_supported_is_named_in_the_answer(
    config: dict[str, str], option: str, value: str
) -> None:
    answer = validate(PLUGINS, {**config, option: value}, WORKER)

    errors = {item["value"]["name"]: item["value"]["errors"] for item in answer["configs"]}
    assert answer["error_count"] == 1
    assert errors[option][0].startswith(f"{option} is not supported: ")
    with pytest.raises(RestError, match=f"{option} is not supported"):
        check_config(PLUGINS, {**config, option: value}, WORKER)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (
            JDBC_SOURCE,
            {
                "numeric.mapping": "none",
                "db.timezone": "UTC",
                "dialect.name": "PostgreSqlDatabaseDialect",
                "quote.sql.identifiers": "ALWAYS",
                "table.types": "TABLE",
                "timestamp.granularity": "connect_logical",
                "connection.attempts": "3",
                "validate.non.null": "false",
                "table.poll.interval.ms": "1000",
            },
        ),
        (JDBC_SINK, {"max.retries": "10", "retry.backoff.ms": "3000", "db.timezone": "UTC"}),
        (
            DEBEZIUM,
            {
                "decimal.handling.mode": "precise",
                "time.precision.mode": "connect",
                "heartbeat.interval.ms": "0",
                "database.sslmode": "require",
                "schema.include.list": "public",
                "skipped.operations": "t",
                "publication.autocreate.mode": "filtered",
                "snapshot.fetch.size": "500",
                "max.queue.size": "8192",
                "column.include.list": "",
            },
        ),
    ],
)
def test_what_happens_here_anyway_is_taken(
    config: dict[str, str], options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        check_config(PLUGINS, {**config, **options}, WORKER)

    assert caplog.text == ""


def test_keys_that_nobody_knows_are_named_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    own = {"transforms": "", "value.converter.schemas.enable": "false", "producer.override.linger.ms": "5"}
    with caplog.at_level(logging.WARNING):
        check_config(PLUGINS, {**JDBC_SINK, **own, "owner": "shop"}, WORKER)

    assert caplog.messages == ["connector c: these keys are not known and have no effect: owner"]


def test_several_columns_of_times_are_refused_by_name() -> None:
    config = {**JDBC_SOURCE, "mode": "timestamp", "timestamp.column.name": "updated,created"}

    with pytest.raises(RestError, match=r"several columns in timestamp\.column\.name are not supported"):
        check_config(PLUGINS, config, WORKER)
