"""Secrets of connectors: they are used, and nothing that the worker says or keeps has them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.connect.conftest import FEW_PARTITIONS
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

PACKAGE = "org.apache.kafka.common.config.provider."
SECRET = "s3cret-passw0rd"


@pytest.fixture
def hiding_worker(node: OttlaNode, tmp_path: Path) -> Iterator[ConnectProcess]:
    names = {
        "group.id": "hiding",
        "config.storage.topic": "hiding-configs",
        "offset.storage.topic": "hiding-offsets",
        "status.storage.topic": "hiding-status",
        "config.providers": "file",
        "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path / "secrets"),
    }
    (tmp_path / "secrets").mkdir()
    options = [part for name, text in names.items() for part in ("--set", f"{name}={text}")]
    with ConnectProcess(node.bootstrap, *FEW_PARTITIONS, *options, log=tmp_path / "worker.log") as running:
        yield running


def test_a_secret_is_used_and_never_seen(
    hiding_worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    worker, secrets = hiding_worker, tmp_path / "secrets" / "db.properties"
    lines = tmp_path / "lines"
    lines.write_text("one\n")
    secrets.write_text(f"password={SECRET}\nlines={lines}\n")

    def variable(key: str) -> str:
        return f"${{file:{secrets}:{key}}}"

    reading = {"connector.class": "FileStreamSource", "file": variable("lines"), "topic": name}
    seen = [worker.ask("PUT", f"/connectors/{name}/config", reading)]
    records = read_topic(node.bootstrap, name, 1)
    assert [record.value for record in records] == [b"one"], "the variable was replaced"
    seen.append(worker.ask("GET", f"/connectors/{name}/tasks"))
    assert seen[-1][1][0]["config"]["file"] == variable("lines")

    # A database that does not exist: the secret is in its address, as it may be in an error.
    failing = {
        "connector.class": "JdbcSink",
        "connection.url": f"jdbc:sqlite:/nowhere/{variable('password')}/x.db",
        "connection.password": variable("password"),
        "topics": name,
    }
    seen.append(worker.ask("PUT", f"/connectors/{name}-sink/config", failing))
    assert seen[-1][0] == 201, seen[-1]
    status = worker.wait_for(
        f"/connectors/{name}-sink/status", lambda answer: answer["tasks"][0]["state"] == "FAILED"
    )
    assert variable("password") in status["tasks"][0]["trace"]
    wrong = {**reading, "name": "x", "batch.size": variable("password")}
    validated = worker.ask("PUT", "/connector-plugins/FileStreamSource/config/validate", wrong)
    assert f"Invalid value {variable('password')} for configuration batch.size" in json.dumps(validated)
    seen += [
        (200, status),
        validated,
        worker.ask("PUT", f"/connectors/{name}-wrong/config", wrong),
        worker.ask("PUT", f"/connectors/{name}-wrong/config", {**wrong, "name": f"{name}-wrong"}),
        worker.ask("GET", "/connectors?expand=info&expand=status"),
        worker.ask("GET", f"/connectors/{name}-sink/config"),
        worker.ask("GET", f"/connectors/{name}-sink/offsets"),
    ]
    outside = {**reading, "topic": "${file:/etc/passwd:root}"}
    assert worker.ask("PUT", f"/connectors/{name}-outside/config", outside)[1]["config"] == {
        **outside,
        "name": f"{name}-outside",
    }, "a path that is not allowed is no variable"

    assert SECRET not in json.dumps(seen)
    for topic in ("hiding-configs", "hiding-status"):
        kept = read_topic(node.bootstrap, topic, 3)
        assert kept
        assert not any(SECRET.encode() in (record.value or b"") for record in kept), topic
    for connector in (name, f"{name}-sink", f"{name}-outside"):
        assert worker.ask("DELETE", f"/connectors/{connector}") == (204, None)
    log = (tmp_path / "worker.log").read_text()
    assert f"{name}-sink" in log, "the failure is logged"
    assert SECRET not in log


def test_a_provider_that_is_not_known_stops_the_start(node: OttlaNode, tmp_path: Path) -> None:
    worker = ConnectProcess(
        node.bootstrap,
        *("--set", "config.providers=vault", "--set", "config.providers.vault.class=com.example.Vault"),
        log=tmp_path / "worker.log",
    )

    with pytest.raises(AssertionError, match="it said"):
        worker.start()

    worker.stop()
    assert "there is no such provider" in (tmp_path / "worker.log").read_text()
