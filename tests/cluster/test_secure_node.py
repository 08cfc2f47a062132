"""`ottla up --secure`: one command makes a node that nobody can use without a password."""

import base64
import contextlib
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ottla_node import OttlaNode, ottla_command
from tests.support.plain_client import PlainClient

from ottla.testing.ports import free_port, is_free
from ottla.wire.messages.metadata import MetadataRequest

GUIDE = Path(__file__).parents[2] / "docs/guide/security.md"


class SecureNode(OttlaNode):
    """A node that was started with --secure."""

    def __init__(self, root: Path, *options: str) -> None:
        self.clients = root / "clients"
        self.audit = root / "audit.jsonl"
        super().__init__(
            root,
            {"ottla.audit.file": str(self.audit)},
            options=("--secure", "--clients", str(self.clients), *options),
        )
        while not all(map(is_free, (self.port + 1000, self.port + 2000))):
            self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ottla_command(*arguments),
            input=text,
            env={**os.environ, "OTTLA_CONFIG": str(self.clients / "ottla.toml")},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    with SecureNode(tmp_path_factory.mktemp("secure")) as node:
        yield node


def test_the_commands_of_the_guide_run(node: SecureNode, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    script = "\n".join(block for block in blocks if "ottla up" not in block)
    script = script.replace("./ottla-clients", str(node.clients))
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "allowed by the rule: ALLOW User:alice" in done.stdout
    assert "denied: no rule allows it" in done.stdout
    assert '\n{"amount": 12}\nwrote second.token' in done.stdout


def test_a_user_without_rights_sees_nothing(node: SecureNode) -> None:
    assert node.run("user", "set", "mallory", text="mallory-secret\n").returncode == 0
    node.run("topic", "create", "private")
    environment = {
        **os.environ,
        "OTTLA_CONFIG": str(node.clients / "ottla.toml"),
        "OTTLA_PROPERTY_SASL_USERNAME": "mallory",
        "OTTLA_PROPERTY_SASL_PASSWORD": "mallory-secret",
    }
    # Even of the topics that all may read, and of what explains, the evidence is for those who may see it.
    assert node.run("acl", "add", "mallory", "read", "topic:public*").returncode == 0
    for command in (
        ["topic", "describe", "private"],
        ["topic", "create", "other"],
        ["acl", "list"],
        ["why", "silent", "somebodys-group"],
        ["why", "twice", "private"],
        ["trace", "private", "--key", "k"],
        ["trace", "private/0@0"],
        ["consume", "__ottla_journal", "-c", "1"],
        ["topic", "delete", "__ottla_journal", "--yes"],
    ):
        done = subprocess.run(
            ottla_command(*command), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "AUTHORIZATION_FAILED" in done.stderr or "authoriz" in done.stderr.lower()


def test_what_happens_is_audited_as_the_guide_shows(node: SecureNode) -> None:
    assert node.run("user", "set", "oscar", text="oscar-secret\n").returncode == 0
    environment = {
        **os.environ,
        "OTTLA_CONFIG": str(node.clients / "ottla.toml"),
        "OTTLA_PROPERTY_SASL_USERNAME": "oscar",
    }
    for password in ("wrong", "oscar-secret"):
        environment["OTTLA_PROPERTY_SASL_PASSWORD"] = password
        command = ottla_command("topic", "describe", "secret-topic")
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert stat.S_IMODE(node.audit.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in node.audit.read_text().splitlines()]
    by_event = {line["event"]: line for line in lines}
    [shown] = re.findall(r"```json\n(.*?)\n```", GUIDE.read_text())
    assert json.loads(shown).keys() == by_event["denied"].keys()
    assert {"login", "login failed", "change"} <= by_event.keys()
    [event] = [line for line in lines if line.get("resource") == "secret-topic"][:1]
    assert event["principal"] == "User:oscar"
    assert "oscar-secret" not in node.audit.read_text()


def test_nobody_gets_in_without_tls(node: SecureNode) -> None:
    with PlainClient(node.bootstrap) as client:
        client.send(MetadataRequest(topics=None))
        with pytest.raises((ConnectionError, AssertionError, EOFError)):
            client.receive()


def test_secrets_are_for_their_owner_and_nowhere_else(node: SecureNode) -> None:
    assert stat.S_IMODE(node.clients.stat().st_mode) == 0o700
    for path in node.clients.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    password = (node.clients / "admin.password").read_text().strip()
    assert len(password) >= 32
    assert password not in node.read_log()
    assert password not in Path(f"/proc/{node.pid}/cmdline").read_text()
    shown = node.run("config", "get", "broker", "0", "--json")
    assert shown.returncode == 0, shown.stderr
    assert password not in shown.stdout
    assert "BEGIN" not in shown.stdout


def test_a_second_start_uses_the_same_files_if_they_are_private(tmp_path: Path) -> None:
    node = SecureNode(tmp_path)
    with node:
        first = (node.clients / "admin.password").read_text()
        assert node.run("topic", "create", "kept").returncode == 0
    with node:
        assert (node.clients / "admin.password").read_text() == first
        assert "kept" in node.run("topic", "list").stdout
    (node.clients / "node.pem").chmod(0o644)
    done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "chmod 600" in done.stderr


def test_a_directory_in_use_gets_no_new_password(tmp_path: Path) -> None:
    with OttlaNode(tmp_path):
        pass
    node = SecureNode(tmp_path)
    done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "--clients" in done.stderr
    assert not node.clients.exists()


def test_a_listener_beyond_loopback_needs_a_login(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path, options=("--host", "0.0.0.0"))
    done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "without authentication" in done.stderr


def test_another_node_joins_by_a_token(tmp_path: Path) -> None:
    with SecureNode(tmp_path / "first") as first:
        file = tmp_path / "second.token"
        make = ("cluster", "token", str(file), "--host", "127.0.0.1", "--clients", str(first.clients))
        made = first.run(*make)
        assert made.returncode == 0, made.stderr
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        password = (first.clients / "admin.password").read_text().strip()
        content = base64.urlsafe_b64decode(file.read_text().partition(".")[2]).decode()
        assert password not in content
        assert (first.clients / "ca.key").read_text() not in content
        with SecureNode(tmp_path / "second", "--join", str(file)) as second:
            created = first.run("topic", "create", "both", "--partitions", "1", "--replication-factor", "2")
            assert created.returncode == 0, created.stderr
            assert first.run("produce", "both", text="hello\n").returncode == 0
            assert first.run("consume", "both", "--bootstrap", second.bootstrap).stdout == "hello\n"
            assert not (second.clients / "admin.password").exists()
            for path in second.clients.iterdir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        file.unlink()
        with SecureNode(tmp_path / "second") as second:
            assert first.run("consume", "both", "--bootstrap", second.bootstrap).stdout == "hello\n"


def test_a_token_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.token"
    file.write_text("ottla-join-1.e30=")
    for mode, reason in ((0o644, "chmod 600"), (0o600, "is no token")):
        file.chmod(mode)
        node = SecureNode(tmp_path / str(mode), "--join", str(file))
        done = subprocess.run(node.command(), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0
        assert reason in done.stderr


def test_nobody_without_a_certificate_gets_in_where_nodes_talk(node: SecureNode) -> None:
    context = ssl.create_default_context(cafile=str(node.clients / "ca.pem"))
    for port in (node.port + 1000, node.port + 2000):
        with socket.create_connection(("127.0.0.1", port)) as plain:
            answer = b""
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
            ):
                wrapped.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff")
                answer = wrapped.recv(1)
            assert answer == b""
