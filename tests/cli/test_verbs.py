"""The verbs of the second day: quotas, features, members and offsets of groups, trimming, profiles."""

import tomllib
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from confluent_kafka import Consumer, TopicPartition
from tests.cli.typing import fail, run, succeed

from ottla.cli.main import main
from ottla.cli.quantities import bytes_text, config_value, seconds_text


def commit(bootstrap: str, group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_quotas_are_set_listed_and_removed(bootstrap: str, name: str) -> None:
    whom = ("--user", name, "--client", "default")
    succeed("quota", "set", "producer_byte_rate=1MB", "request_percentage=50", *whom, bootstrap=bootstrap)
    rows = [
        row for row in succeed("quota", "list", "--json", bootstrap=bootstrap).data if row["user"] == name
    ]
    assert [(row["client"], row["ip"], row["quota"], row["value"]) for row in rows] == [
        ("default", None, "producer_byte_rate", 1e6),
        ("default", None, "request_percentage", 50.0),
    ]
    assert "has no quota consumer_byte_rate" in fail(
        "quota", "remove", "consumer_byte_rate", *whom, bootstrap=bootstrap
    )
    assert succeed("quota", "remove", *whom, "--json", bootstrap=bootstrap).data["removed"] == [
        "producer_byte_rate",
        "request_percentage",
    ]
    assert "has no quotas" in fail("quota", "remove", *whom, bootstrap=bootstrap)
    typed = run("quota", "set", "producer_byte_rat=1", *whom, bootstrap=bootstrap)
    assert typed.code == 2
    assert "did you mean producer_byte_rate?" in typed.err
    assert run("quota", "set", "producer_byte_rate=1", bootstrap=bootstrap).code == 2


def test_features_are_listed_and_upgraded(bootstrap: str) -> None:
    found = {row["feature"]: row for row in succeed("feature", "list", "--json", bootstrap=bootstrap).data}
    assert found["metadata.version"]["lowest"] <= found["metadata.version"]["level"]
    assert "there is no feature nosuch" in fail("feature", "upgrade", "nosuch", bootstrap=bootstrap)
    level = str(found["group.version"]["level"])
    same = succeed("feature", "upgrade", "group.version", "--to", level, bootstrap=bootstrap).out
    assert same == "all features have that level already\n"
    lower = ("feature", "upgrade", "group.version", "--to", "0", "--dry-run")
    assert "group.version" in fail(*lower, bootstrap=bootstrap)
    assert "could set group.version to 0" in succeed(*lower, "--downgrade", bootstrap=bootstrap).out


def test_offsets_go_to_a_file_and_come_back(bootstrap: str, name: str, tmp_path: Path) -> None:
    succeed("topic", "create", name, "-p", "2", bootstrap=bootstrap)
    succeed("produce", name, "-p", "0", "-v", "a", "-v", "b", bootstrap=bootstrap)
    commit(bootstrap, name, name, 2, 0)
    exported = succeed("group", "export", name, bootstrap=bootstrap).out
    assert exported == f"{name},0,2\n{name},1,0\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    commit(bootstrap, name, name, 1, 0)
    succeed("group", "reset", name, "--from-file", str(file), "--execute", bootstrap=bootstrap)
    assert succeed("group", "export", name, bootstrap=bootstrap).out == exported
    file.write_text("topic;0;1\n")
    assert "is not a list of offsets" in fail(
        "group", "reset", name, "--from-file", str(file), bootstrap=bootstrap
    )
    succeed(
        "group", "delete-offsets", name, "--topic", name, "--partition", "1", "--yes", bootstrap=bootstrap
    )
    assert succeed("group", "export", name, bootstrap=bootstrap).out == f"{name},0,2\n"
    assert "has committed nothing for nosuch" in fail(
        "group", "delete-offsets", name, "--topic", "nosuch", "--yes", bootstrap=bootstrap
    )


def test_a_static_member_is_removed(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "group.instance.id": "pod-a"}
    consumer = Consumer({**settings, "session.timeout.ms": 45_000})
    consumer.subscribe([name])
    while not consumer.assignment():
        consumer.poll(0.1)
    # A static member does not leave when it is closed.
    consumer.close()
    assert succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["members"]
    succeed("group", "remove-member", name, "pod-a", bootstrap=bootstrap)
    assert not succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["members"]
    said = fail("group", "remove-member", name, "pod-a", bootstrap=bootstrap)
    assert "pod-a" in said
    assert said.endswith("`ottla group describe` lists the members that there are"), "none is to be stopped"


def test_a_topic_is_trimmed_to_an_offset_or_a_time(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "-p", "1", "-c", "retention.ms=-1", bootstrap=bootstrap)
    lines = "".join(f'{{"value": "v{number}", "timestamp_ms": {number + 1}000}}\n' for number in range(5))
    succeed("produce", name, "--format=json", stdin=lines, bootstrap=bootstrap)
    assert run("topic", "trim", name, "--to-offset", "2", "--yes", bootstrap=bootstrap).code == 2
    succeed("topic", "trim", name, "--to-offset", "2", "-p", "0", "--yes", bootstrap=bootstrap)
    assert succeed("consume", name, "--format=value", bootstrap=bootstrap).out.split() == ["v2", "v3", "v4"]
    said = succeed(
        "topic", "trim", name, "--to-time", "1970-01-01T00:00:04+00:00", "--yes", bootstrap=bootstrap
    )
    assert said.out == f"{name} begins now: partition 0 at 3\n"
    succeed("topic", "trim", name, "--to-time", "1h", "--yes", bootstrap=bootstrap)
    assert succeed("consume", name, "--format=value", bootstrap=bootstrap).out == ""


def test_short_options_durations_and_sizes(bootstrap: str, name: str) -> None:
    configs = ("-c", "retention.ms=7d", "-c", "segment.bytes=64MiB")
    succeed("topic", "create", name, "-p", "3", "-r", "1", *configs, bootstrap=bootstrap)
    shown = succeed("topic", "describe", name, "--json", bootstrap=bootstrap).data
    assert len(shown["partitions"]) == 3
    assert shown["configs"]["retention.ms"] == str(7 * 86_400_000)
    assert shown["configs"]["segment.bytes"] == str(64 << 20)
    succeed("config", "set", "topic", name, "retention.ms=1.5h", bootstrap=bootstrap)
    (row,) = succeed("config", "get", "topic", name, "retention.ms", "--json", bootstrap=bootstrap).data
    assert row["value"] == "5400000"


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("retention.ms", "1h", "3600000"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "10GB", "10GB"),
        ("segment.bytes", "10GB", "10000000000"),
        ("segment.bytes", "1.5 KiB", "1536"),
        ("follower.replication.throttled.rate", "1MB", "1MB"),
        ("cleanup.policy", "1h", "1h"),
        ("ottla.scrub.bytes.per.second", "5MB", "5000000"),
    ],
)
def test_a_quantity_is_translated_where_its_name_says_of_what(key: str, value: str, meant: str) -> None:
    assert config_value(key, value) == meant


def test_quantities_are_shown_to_people() -> None:
    assert [bytes_text(size) for size in (999, 1_412_215, 5 * 10**13)] == ["999 B", "1.4 MB", "50.0 TB"]
    assert [seconds_text(one) for one in (1.5, 604_794.3, 7_300)] == ["1.5 s", "7.0 d", "2.0 h"]


def test_names_with_typos_are_answered_with_those_that_are_there(bootstrap: str, name: str) -> None:
    topic = f"{name[-30:]}-payments"
    succeed("topic", "create", topic, bootstrap=bootstrap)
    typo = topic.replace("payments", "paymnts")
    for words in (
        ("topic", "describe", typo),
        ("topic", "delete", typo),
        ("topic", "trim", typo, "--to-time=1h", "--yes"),
    ):
        assert fail(*words, bootstrap=bootstrap).endswith(f"did you mean {topic}?")
    commit(bootstrap, topic, topic, 0)
    assert fail("group", "describe", typo, bootstrap=bootstrap).endswith(f"did you mean {topic}?")


def test_names_are_completed(ottla_bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("topic", "create", f"{name}-long", bootstrap=ottla_bootstrap)
    commit(ottla_bootstrap, f"{name}-group", f"{name}-long", 0)
    monkeypatch.setenv("OTTLA_CONFIG", "/dev/null")

    def completed(words: list[str], begun: str) -> list[str]:
        completion = ShellComplete(main, {}, "ottla", "_OTTLA_COMPLETE")
        return [item.value for item in completion.get_completions(words, begun)]

    for words in (["topic", "describe"], ["consume"], ["produce"], ["why", "order"]):
        assert completed([*words, "-b", ottla_bootstrap], name) == [f"{name}-long"]
    assert completed(["group", "describe", "-b", ottla_bootstrap], name) == [f"{name}-group"]
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_bootstrap)
    assert completed(["topic", "describe"], name) == [f"{name}-long"]
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "127.0.0.1:1")
    assert completed(["topic", "describe"], name) == []


def test_a_cluster_in_order_is_healthy(bootstrap: str) -> None:
    found = succeed("health", "--json", bootstrap=bootstrap).lines
    assert [(one["healthy"], one["brokers"], one["brokers_down"]) for one in found] == [(True, 1, [])]
    assert succeed("health", bootstrap=bootstrap).out.startswith("healthy: 1 brokers")


def test_a_broker_that_runs_is_not_forgotten(bootstrap: str) -> None:
    (node,) = succeed("cluster", "describe", "--json", bootstrap=bootstrap).data["nodes"]
    said = fail("cluster", "unregister", str(node["node"]), "--yes", bootstrap=bootstrap)
    assert said.endswith("is running: stop it first, or it would register again")
    assert "there is no broker 77" in fail("cluster", "unregister", "77", "--yes", bootstrap=bootstrap)
    assert "is a controller, too" in fail(
        "cluster", "remove", str(node["node"]), "--yes", bootstrap=bootstrap
    )


def test_profiles_are_created_listed_and_chosen(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\n")
    config = str(path)
    succeed("profile", "create", "one", "-b", "127.0.0.1:1", OTTLA_CONFIG=config)
    succeed("profile", "create", "two", "-b", "127.0.0.1:2", "request.timeout.ms=100", OTTLA_CONFIG=config)
    assert "already" in fail("profile", "create", "two", "-b", "127.0.0.1:3", OTTLA_CONFIG=config)
    succeed("profile", "use", "one", OTTLA_CONFIG=config)
    succeed("profile", "use", "two", OTTLA_CONFIG=config)
    rows = succeed("profile", "list", "--json", OTTLA_CONFIG=config).data
    assert [(row["profile"], row["used"], row["bootstrap"]) for row in rows] == [
        ("one", False, "127.0.0.1:1"),
        ("two", True, "127.0.0.1:2"),
    ]
    assert path.read_text().startswith('use = "two"\n# mine\n')
    assert tomllib.loads(path.read_text())["profiles"]["two"]["request.timeout.ms"] == "100"
    assert path.stat().st_mode & 0o077 == 0, "it may have passwords in it"
    assert "no broker answers at 127.0.0.1:2;" in fail("topic", "list", OTTLA_CONFIG=config)
    assert "no broker answers at 127.0.0.1:1;" in fail("topic", "list", "--profile=one", OTTLA_CONFIG=config)
    assert "has no profile 'three'" in fail("profile", "use", "three", OTTLA_CONFIG=config)
    assert "is not a file" in fail("profile", "create", "x", "-b", "a:1", OTTLA_CONFIG="/dev/null")


def test_hanging_transactions_are_listed(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    assert succeed("txn", "hanging", name, "--json", bootstrap=bootstrap).data == []


def test_help_is_a_command_too() -> None:
    assert succeed("help").out == succeed("--help").out
    assert succeed("help", "topic", "create").out == succeed("topic", "create", "--help").out


def test_an_address_with_a_scheme_is_told_apart() -> None:
    said = fail("topic", "list", "-b", "http://127.0.0.1:9092")
    assert "leave out http://" in said


def test_a_compacted_topic_says_that_a_key_is_missing(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "-c", "cleanup.policy=compact", bootstrap=bootstrap)
    said = fail("produce", name, "-v", "x", bootstrap=bootstrap)
    assert "without" in said
    assert "key" in said
