"""The keys that all connectors have, and those that all sources or all sinks have."""

from collections.abc import Mapping
from typing import Final

from ottla.connect.configs.keys import (
    Importance,
    Key,
    Kind,
    a_class,
    at_least,
    few_names,
    one_of,
    plain_name,
)
from ottla.connect.plugins import PluginKind, Plugins

COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_MEDIUM, _LOW = Importance.MEDIUM, Importance.LOW

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
TASKS_MAX: Final = "tasks.max"
TASKS_MADE_MAX: Final = 1_000
"""How many tasks a connector has, whatever it may have: each is a record, and a part of the group."""
KEY_CONVERTER: Final = "key.converter"
VALUE_CONVERTER: Final = "value.converter"
HEADER_CONVERTER: Final = "header.converter"
TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"
RETRY_TIMEOUT: Final = "errors.retry.timeout"
RETRY_DELAY_MAX: Final = "errors.retry.delay.max.ms"
TOLERANCE: Final = "errors.tolerance"
LOG_ENABLE: Final = "errors.log.enable"
LOG_MESSAGES: Final = "errors.log.include.messages"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"
DLQ_REPLICATION: Final = "errors.deadletterqueue.topic.replication.factor"
DLQ_HEADERS: Final = "errors.deadletterqueue.context.headers.enable"
TOPIC_PARTITIONS: Final = "topic.creation.default.partitions"
TOPIC_REPLICATION: Final = "topic.creation.default.replication.factor"


def common_keys(plugins: Plugins, worker: Mapping[str, str]) -> tuple[Key, ...]:
    """Return the keys of all connectors. The worker has the defaults of the converters."""

    def converter(name: str, doc: str, kind: PluginKind, order: int) -> Key:
        check = a_class(lambda text: plugins.find(text, kind) is not None)
        return Key(name, Kind.CLASS, doc, worker[name], _LOW, COMMON, check, order=order)

    converters, header_converters = PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER
    return (
        Key(
            NAME,
            Kind.STRING,
            "The name of the connector, unique among those of the workers.",
            group=COMMON,
            check=plain_name,
            order=1,
        ),
        Key(
            CONNECTOR_CLASS,
            Kind.STRING,
            "The class of the connector, in full or its alias.",
            group=COMMON,
            order=2,
        ),
        Key(
            TASKS_MAX,
            Kind.INT,
            "The maximum number of tasks to use.",
            1,
            Importance.HIGH,
            COMMON,
            at_least(1),
            order=3,
        ),
        Key(
            "tasks.max.enforce",
            Kind.BOOLEAN,
            "Whether a connector that makes more tasks than tasks.max fails.",
            True,
            _LOW,
            COMMON,
            order=4,
        ),
        converter(KEY_CONVERTER, "How keys become bytes and back.", converters, 5),
        converter(VALUE_CONVERTER, "How values become bytes and back.", converters, 6),
        converter(HEADER_CONVERTER, "How values of headers become bytes and back.", header_converters, 7),
        Key(
            TRANSFORMS,
            Kind.LIST,
            "Names of the transformations that each record passes, in this order.",
            [],
            _LOW,
            "Transforms",
            few_names,
            order=8,
        ),
        Key(
            PREDICATES,
            Kind.LIST,
            "Names of the predicates that transformations can depend on.",
            [],
            _LOW,
            "Predicates",
            few_names,
            order=9,
        ),
        Key(
            "config.action.reload",
            Kind.STRING,
            "What to do when a secret changes outside: none or restart.",
            "restart",
            _LOW,
            COMMON,
            one_of("none", "restart"),
            order=10,
        ),
        *_error_keys(),
    )


def _error_keys() -> tuple[Key, ...]:
    return (
        Key(
            RETRY_TIMEOUT,
            Kind.LONG,
            "Taken as Kafka Connect's, and without effect: what may be better later is tried again until it "
            "is, and what never will be is not tried again.",
            0,
            _MEDIUM,
            _ERRORS,
            order=1,
        ),
        Key(
            RETRY_DELAY_MAX,
            Kind.LONG,
            "The longest pause between two attempts to put records, in milliseconds.",
            60_000,
            _MEDIUM,
            _ERRORS,
            order=2,
        ),
        Key(
            TOLERANCE,
            Kind.STRING,
            "none: the first record that cannot be processed fails the task. all: such records are left out.",
            "none",
            _MEDIUM,
            _ERRORS,
            one_of("none", "all"),
            order=3,
        ),
        Key(
            LOG_ENABLE,
            Kind.BOOLEAN,
            "Whether each error and the operation that failed is logged.",
            False,
            _MEDIUM,
            _ERRORS,
            order=4,
        ),
        Key(
            LOG_MESSAGES,
            Kind.BOOLEAN,
            "Whether the log also names the record: its topic, partition and offset.",
            False,
            _MEDIUM,
            _ERRORS,
            order=5,
        ),
    )


SOURCE_KEYS: Final = (
    Key(
        TOPIC_PARTITIONS,
        Kind.INT,
        "The number of partitions of topics that the connector creates. -1: the default of the broker.",
        -1,
        _LOW,
        "Topic Creation",
        order=1,
    ),
    Key(
        TOPIC_REPLICATION,
        Kind.INT,
        "The number of replicas of topics that the connector creates. -1: the default of the broker.",
        -1,
        _LOW,
        "Topic Creation",
        order=2,
    ),
    Key(
        "exactly.once.support",
        Kind.STRING,
        "required or requested. Sources are always exactly once here, as far as they can repeat a read.",
        "requested",
        _MEDIUM,
        "Exactly Once Support",
        one_of("required", "requested"),
        order=1,
    ),
    Key(
        "transaction.boundary",
        Kind.STRING,
        "What a transaction holds. Only poll is supported: each batch of records with its offsets.",
        "poll",
        _MEDIUM,
        "Exactly Once Support",
        one_of("poll"),
        order=2,
    ),
)

SINK_KEYS: Final = (
    Key(TOPICS, Kind.LIST, "The topics to read, separated by commas.", [], group=COMMON, order=11),
    Key(
        TOPICS_REGEX,
        Kind.STRING,
        "A regular expression of the names of topics to read, instead of `topics`.",
        "",
        group=COMMON,
        order=12,
    ),
    Key(
        DLQ_TOPIC,
        Kind.STRING,
        "The topic for records that cannot be processed. Empty: they are left out without a copy.",
        "",
        _MEDIUM,
        _ERRORS,
        order=6,
    ),
    Key(
        DLQ_REPLICATION,
        Kind.INT,
        "The number of replicas of that topic if it has to be created.",
        3,
        _MEDIUM,
        _ERRORS,
        order=7,
    ),
    Key(
        DLQ_HEADERS,
        Kind.BOOLEAN,
        "Whether such records get headers that say what went wrong.",
        False,
        _MEDIUM,
        _ERRORS,
        order=8,
    ),
)


def tasks_to_make(config: Mapping[str, str]) -> int:
    """Return among how many tasks a connector may divide its work."""
    return min(int(config.get(TASKS_MAX, "1")), TASKS_MADE_MAX)
