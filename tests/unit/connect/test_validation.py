"""What is said about a configuration that cannot be used, in Kafka's words."""

import pytest

from ottla.client.properties import InvalidProperty
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.shared_keys import tasks_to_make
from ottla.connect.configs.validation import check_config, validate
from ottla.connect.errors import RestError
from ottla.connect.settings import WorkerSettings, read_settings

PLUGINS = all_plugins()
WORKER = WorkerSettings().defaults
SOURCE = {"name": "c", "connector.class": "FileStreamSource", "topic": "t", "file": "f"}
_LOG = "Invalid value maybe for configuration errors.log.enable"
TOPICLESS = {"name": "c", "connector.class": "FileStreamSink", "file": "f"}
TABLES = {
    "name": "c",
    "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
    "connection.url": "jdbc:sqlite:f",
    "mode": "bulk",
}
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "f"}


def _no_name(shown: str) -> str:
    reason = "String may not have half characters or more than 1000 bytes"
    return f"Invalid value {shown}... for configuration name: {reason}"


def _no_pattern(name: str) -> str:
    return (
        rf"Invalid value (a)\1 for configuration {name}: Not a regular expression in RE2's syntax, "
        r"which has no looks around: invalid escape sequence: \1"
    )


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({**SOURCE, "name": ""}, "Invalid value  for configuration name: String may not be empty"),
        (
            {**SOURCE, "tasks.max": "0"},
            "Invalid value 0 for configuration tasks.max: Value must be at least 1",
        ),
        (
            {**SOURCE, "errors.log.enable": "maybe"},
            f"{_LOG}: Expected value to be either true or false",
        ),
        (
            {**SOURCE, "value.converter": "X"},
            "Invalid value X for configuration value.converter: Class X could not be found.",
        ),
        (
            {**SINK, "topics.regex": "("},
            "topics and topics.regex are mutually exclusive options, but both are set.",
        ),
        (
            {**SOURCE, "transforms": "a", "transforms.a.type": "RegexRouter"},
            'Missing required configuration "transforms.a.regex" which has no default value.',
        ),
        (
            {**SOURCE, "predicates": "p", "predicates.p.type": "TopicNameMatches"},
            'Missing required configuration "predicates.p.pattern" which has no default value.',
        ),
        # No worker could join the group again, since none can tell the others of such a connector.
        ({**SOURCE, "name": "x" * 1001}, _no_name("x" * 50)),
        ({**SOURCE, "name": "\ud800"}, _no_name("\ud800")),
        (
            {**SOURCE, "transforms": ",".join(f"t{number}" for number in range(10_000))},
            "Invalid value 10000 names for configuration transforms: There may be 100 at most.",
        ),
        # Python would take for ever with `(a+)+b`. RE2, which has no references back, does not.
        ({**TOPICLESS, "topics.regex": r"(a)\1"}, _no_pattern("topics.regex")),
        (
            {**SOURCE, "transforms": "a", "transforms.a.type": "RegexRouter", "transforms.a.regex": r"(a)\1"},
            _no_pattern("transforms.a.regex"),
        ),
        (
            {
                **SOURCE,
                "predicates": "p",
                "predicates.p.type": "TopicNameMatches",
                "predicates.p.pattern": r"(a)\1",
            },
            _no_pattern("predicates.p.pattern"),
        ),
        ({**TABLES, "table.include.list": r"a,(a)\1"}, _no_pattern("table.include.list")),
        ({**TABLES, "table.exclude.list": r"(a)\1"}, _no_pattern("table.exclude.list")),
    ],
)
def test_what_is_wrong_is_named(config: dict[str, str], text: str) -> None:
    with pytest.raises(RestError) as raised:
        check_config(PLUGINS, config, WORKER)

    assert raised.value.status == 400
    assert text in raised.value.message.splitlines()


def test_a_connector_has_few_tasks_whatever_it_may_have() -> None:
    assert tasks_to_make({}) == 1
    assert tasks_to_make({"tasks.max": "7"}) == 7
    # A sink has as many as it may have.
    assert tasks_to_make({"tasks.max": "2147483647"}) == 1000


def test_a_good_configuration_has_no_errors_and_all_keys() -> None:
    answer = validate(PLUGINS, {**SINK, "errors.tolerance": "all"}, WORKER)

    assert answer["error_count"] == 0
    names = [item["definition"]["name"] for item in answer["configs"]]
    assert len(names) == len(set(names))
    assert {"name", "topics", "errors.deadletterqueue.topic.name", "file"} <= set(names)


def test_secrets_are_not_shown() -> None:
    config = {
        "name": "c",
        "connector.class": "JdbcSource",
        "connection.url": "jdbc:sqlite:x",
        "connection.password": "hunter2",
        "mode": "bulk",
        "topic.prefix": "t",
    }

    answer = validate(PLUGINS, config, WORKER)

    assert "hunter2" not in str(answer)


def test_properties_of_a_kafka_worker_are_understood() -> None:
    settings, clients = read_settings(
        {
            "bootstrap.servers": "h:1",
            "group.id": "g",
            "offset.storage.partitions": "3",
            "config.storage.replication.factor": "-1",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "plugin.path": "/opt",
            "producer.linger.ms": "7",
        }
    )

    assert clients == {"bootstrap.servers": "h:1"}
    assert (settings.group_id, settings.offset_partitions, settings.config_replicas) == ("g", 3, None)
    assert settings.defaults["key.converter.schemas.enable"] == "false"
    assert settings.client("producer", {}, {"producer.override.acks": "all"}) == {
        "linger.ms": "7",
        "acks": "all",
    }


@pytest.mark.parametrize(
    ("more", "key", "meant"),
    [
        ({"errors.tolerence": "all"}, "errors.tolerence", "errors.tolerance"),
        ({"topisc.regex": "x"}, "topisc.regex", "topics.regex"),
        ({"task.max": "2"}, "task.max", "tasks.max"),
        (
            {"transforms": "a", "transforms.a.type": "ValueToKey", "transforms.a.feilds": "x"},
            "transforms.a.feilds",
            "transforms.a.fields",
        ),
        (
            {"value.converter": "JsonConverter", "value.converter.schema.enable": "false"},
            "value.converter.schema.enable",
            "value.converter.schemas.enable",
        ),
    ],
)
def test_a_key_that_looks_like_another_is_misspelt(more: dict[str, str], key: str, meant: str) -> None:
    given = {**SINK, **more}
    with pytest.raises(RestError) as raised:
        check_config(PLUGINS, given, WORKER)
    assert f"{key} is not known: did you mean {meant}?" in raised.value.message.splitlines()
    (found,) = [item for item in validate(PLUGINS, given, WORKER)["configs"] if item["value"]["name"] == key]
    assert found["value"]["errors"] == [f"{key} is not known: did you mean {meant}?"]


def test_a_key_of_somebody_else_is_taken_and_so_is_a_misspelt_one_if_the_worker_says_so() -> None:
    notes = {"owner": "shop", "producer.override.linger.ms": "5", "value.converter.schemas.enable": "false"}
    check_config(PLUGINS, {**SINK, **notes, "value.converter": "JsonConverter"}, WORKER)
    settings, clients = read_settings({"ottla.misspelt.keys": "ignored"})
    assert clients == {}
    check_config(PLUGINS, {**SINK, "task.max": "2"}, WORKER, settings.permissions)
    with pytest.raises(InvalidProperty, match="use refused or ignored"):
        read_settings({"ottla.misspelt.keys": "yes"})
