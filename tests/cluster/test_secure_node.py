"""`ottla up --secure`: one command makes a node that nobody can use without a password."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ottla_node import OttlaNode, ottla_command
from tests.support.plain_client import PlainClient

from ottla.wire.messages.metadata import MetadataRequest

GUIDE = Path(__file__).parents[2] / "docs/guide/security.md"


class SecureNode(OttlaNode):
    """A node that was started with --secure."""

    def __init__(self, root: Path) -> None:
        self.clients = root / "clients"
        super().__init__(root, options=("--secure", "--clients", str(self.clients)))

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


def test_the_commands_of_the_guide_run(node: SecureNode) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    script = "\n".join(block for block in blocks if "ottla up" not in block)
    script = script.replace("./ottla-clients", str(node.clients))
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "allowed by the rule: ALLOW User:alice" in done.stdout
    assert "denied: no rule allows it" in done.stdout
    assert done.stdout.rstrip().endswith('{"amount": 12}')


def test_a_user_without_rights_sees_nothing(node: SecureNode) -> None:
    assert node.run("user", "set", "mallory", text="mallory-secret\n").returncode == 0
    node.run("topic", "create", "private")
    environment = {
        **os.environ,
        "OTTLA_CONFIG": str(node.clients / "ottla.toml"),
        "OTTLA_PROPERTY_SASL_USERNAME": "mallory",
        "OTTLA_PROPERTY_SASL_PASSWORD": "mallory-secret",
    }
    for command in (["topic", "describe", "private"], ["topic", "create", "other"], ["acl", "list"]):
        done = subprocess.run(
            ottla_command(*command), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "AUTHORIZATION_FAILED" in done.stderr or "authoriz" in done.stderr.lower()


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
