"""What commands are told in confidence is in no error, no list of processes, and in no file for others."""

import os
import stat
from pathlib import Path

import pytest
from tests.cli.typing import fail, run

from ottla.cli.nodes.local_cluster import plan_nodes, read_shared_settings, write_properties
from ottla.model.properties import iter_properties

SECRET = "a-secret-that-nobody-sees"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIE+/=\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "words",
    [
        ("up", "--set", f"ssl.key.password:{SECRET}"),
        ("up", "--nodes", "3", "--set", f"ssl.key.password:{SECRET}"),
        ("connect", "--set", f"sasl.password:{SECRET}"),
        ("topic", "list", "-X", f"sasl.password:{SECRET}"),
        ("topic", "create", "t", "--config", SECRET),
        ("config", "set", "topic", "t", f"x:{SECRET}"),
        ("storage", "format", "--add-scram", f"SCRAM-SHA-256=[name=a,password={SECRET},{SECRET}]"),
        ("storage", "format", "--add-scram", f"SCRAM-SHA-256=[name=a,{SECRET.replace('-', '')}=x]"),
        ("storage", "format", "--add-scram", f"SCRAM-SHA-256[name=a,password={SECRET}]"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_an_error_never_repeats_a_value(words: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--data", str(tmp_path)) if words[0] in ("up", "storage") else ()
    typed = run(*words, *more)
    assert typed.code != 0
    assert "secret" not in typed.out + typed.err
    assert "nobodysees" not in typed.out + typed.err


@pytest.mark.parametrize("key", ["password", "saltedpassword", " password "])
def test_no_password_is_an_argument_of_a_node(key: str, tmp_path: Path) -> None:
    credential = f"SCRAM-SHA-256=[name=admin,{key}={SECRET}]"
    typed = run("up", "--data", str(tmp_path / "data"), "--add-scram", credential)
    assert "write password-file=FILE in its place" in " ".join(typed.err.split())
    assert not (tmp_path / "data").exists()


def test_a_password_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    option = ("storage", "format", "--data", str(tmp_path / "data"), "--add-scram")
    credential = f"SCRAM-SHA-256=[name=admin,password-file={file}]"
    assert f"--add-scram: cannot read {file}: No such file" in fail(*option, credential)
    file.write_text("\n")
    assert "has no password in it" in fail(*option, credential)
    file.write_text("it\n")
    assert run(*option, credential).code == 0


def test_the_files_of_several_nodes_say_what_the_shared_one_says_and_only_to_their_owner(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared.properties"
    shared.write_bytes(b"ssl.key.password=" + SECRET.encode() + b"\nssl.keystore.key=a \\\n  b\n")
    settings = {**read_shared_settings(shared), "ssl.keystore.certificate.chain": PEM}
    nodes = plan_nodes(3, 9092, tmp_path / "data")
    before = os.umask(0)
    try:
        write_properties(nodes, "127.0.0.1", settings)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    for node in nodes:
        assert stat.S_IMODE(node.config_file.stat().st_mode) == 0o600
        read = {item.key: item.value for item in iter_properties(node.config_file.read_bytes())}
        assert read.items() >= settings.items()
