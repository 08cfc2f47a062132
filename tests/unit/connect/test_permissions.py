"""A connector gets nothing of its worker that the worker does not give."""

import pytest

from ottla.client.properties import InvalidProperty
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.permissions import client_properties
from ottla.connect.configs.validation import check_config, validate
from ottla.connect.errors import ConnectError, RestError
from ottla.connect.herding.units import Unit
from ottla.connect.running.making import TaskMaker
from ottla.connect.settings import read_settings

PLUGINS = all_plugins()
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "f"}
SPARK = {**SINK, "connector.class": "SparkSink", "spark.format": "parquet", "spark.path": "p"}
JAVA_NONE = "org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy"
LOGIN = {
    "sasl.username": "worker",
    "sasl.password": "secret",
    "sasl.oauthbearer.client.credentials.client.secret": "secret",
    "ssl.key.location": "worker.key",
    "ssl.certificate.location": "worker.pem",
}
WORKER = {
    "bootstrap.servers": "a:9092,b:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "ssl.ca.location": "ca.pem",
    **LOGIN,
}


@pytest.mark.parametrize(
    "overrides",
    [
        {"bootstrap.servers": "evil:9092"},
        {"bootstrap.servers": "a:9092,evil:9092"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"ssl.ca.location": "evil.pem"},
        {"ssl.endpoint.identification.algorithm": ""},
        {"sasl.mechanism": "OAUTHBEARER"},
        {"sasl.oauthbearer.token.endpoint.url": "http://evil"},
        {"bootstrap.servers": "evil:9092", "sasl.username": "worker"},
    ],
)
def test_the_login_of_the_worker_goes_to_no_other_broker_and_no_other_way(overrides: dict[str, str]) -> None:
    found = client_properties(WORKER, overrides)
    assert {**found, **overrides} == found
    assert "secret" not in found.values()
    assert not {name: found[name] for name in LOGIN if name in found and name not in overrides}


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"linger.ms": "5"},
        {"bootstrap.servers": "b:9092"},
        {"security.protocol": "SASL_SSL"},
        {"sasl.username": "own", "sasl.password": "own"},
    ],
)
def test_other_overrides_leave_the_login(overrides: dict[str, str]) -> None:
    assert client_properties(WORKER, overrides) == {**WORKER, **overrides}


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", []),
        ("None", ["linger.ms", "sasl.jaas.config"]),
        ("Principal", ["linger.ms"]),
        (JAVA_NONE, ["linger.ms", "sasl.jaas.config"]),
        ("Allowlist", ["sasl.jaas.config"]),
    ],
)  # fmt: skip
def test_the_policy_of_overrides_is_obeyed(policy: str, refused: list[str]) -> None:
    settings, _ = read_settings(
        {
            "connector.client.config.override.policy": policy,
            "connector.client.config.override.allowlist": "linger.ms, acks",
        }
    )
    overrides = {"producer.override.linger.ms": "5", "producer.override.sasl.jaas.config": "x"}
    answer = validate(PLUGINS, {**SINK, **overrides}, settings.defaults, None, settings.permissions)
    found = {item["value"]["name"]: item["value"]["errors"] for item in answer["configs"]}
    for name in ("linger.ms", "sasl.jaas.config"):
        errors = found.get(f"producer.override.{name}", [])
        assert bool(errors) is (name in refused), errors


def test_a_policy_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidProperty, match="use one of All, None"):
        read_settings({"connector.client.config.override.policy": "com.example.Own"})


@pytest.mark.parametrize(
    ("properties", "way_out"),
    [
        ({"rest.extension.classes": "com.example.Login"}, "--users"),
        ({"response.http.headers.config": "add X: y"}, "proxy"),
        ({"admin.listeners": ""}, "leave it out"),
        ({"listeners": "https://0.0.0.0:8443"}, "--tls-certificate"),
        ({"listeners.https.ssl.client.auth": "required"}, "--tls-client-ca"),
    ],
)
def test_a_worker_does_not_start_without_the_protection_it_was_asked_for(
    properties: dict[str, str], way_out: str
) -> None:
    with pytest.raises(InvalidProperty, match=way_out):
        read_settings(properties)


def test_listeners_with_tls_are_taken_by_a_worker_that_has_it() -> None:
    read_settings({"listeners": "https://0.0.0.0:8443"}, answers_tls=True)
    read_settings({"listeners": "http://0.0.0.0:8083", "rest.extension.classes": ""})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.conf.driver.extraJavaOptions", "-javaagent:x.jar"),
        ("spark.conf.jars.packages", "com.example:x:1"),
        ("spark.conf.driver.extraClassPath", "x"),
        ("spark.conf.sql.extensions", "com.example.X"),
        ("spark.master", "spark://evil:7077"),
    ],
)
def test_what_reaches_java_has_to_be_allowed_by_name(name: str, value: str) -> None:
    settings, _ = read_settings({})
    with pytest.raises(RestError, match=r"ottla\.spark\.conf\.allowed"):
        check_config(PLUGINS, {**SPARK, name: value}, settings.defaults, settings.permissions)
    allowed = name.removeprefix("spark.conf.").removeprefix("spark.")
    settings, _ = read_settings({"ottla.spark.conf.allowed": f"x, {allowed}"})
    check_config(PLUGINS, {**SPARK, name: value}, settings.defaults, settings.permissions)


def test_harmless_settings_of_spark_need_no_permission() -> None:
    settings, _ = read_settings({})
    config = {**SPARK, "spark.conf.sql.session.timeZone": "UTC", "spark.master": "local[2]"}
    check_config(PLUGINS, config, settings.defaults, settings.permissions)


def test_a_configuration_that_another_worker_took_is_not_run() -> None:
    settings, _ = read_settings({"connector.client.config.override.policy": "None"})
    maker = TaskMaker(PLUGINS, settings, {}, None, lambda _unit, _topic: None, str)  # type: ignore[arg-type]
    config = {**SINK, "consumer.override.bootstrap.servers": "evil:9092"}
    plugin = check_config(PLUGINS, config, settings.defaults)
    with pytest.raises(ConnectError, match="The 'None' policy does not allow"):
        maker.make(Unit("c", 0), plugin, config, None)  # type: ignore[arg-type]
