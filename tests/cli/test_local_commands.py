"""Commands that need no cluster: the files of a log, data directories, profiles, help and completion."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.typing import fail, run, succeed

from ottla import __version__
from ottla.cli.main import COMMANDS
from ottla.cli.times import parse_time_ms
from ottla.model.properties import encode_settings, iter_properties
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.testing.node import ThreadNode

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a bit of everything, after a clean stop. It must not be changed."""
    with ThreadNode(tmp_path_factory.mktemp("stopped")) as node:
        node.create_topic("orders", partitions=2)
        node.produce("orders", "coffee", "tea", key="alice", partition=0, headers=[("from", b"web")])
        group = ("consume", "orders", "--group", "readers", "-c", "2")
        succeed(*group, bootstrap=node.bootstrap)
    return node.data_directory


@pytest.fixture
def damaged(stopped: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return Path(shutil.copytree(stopped, tmp_path / "data"))


# ottla log dump


def test_a_log_is_dumped_in_words(stopped: Path) -> None:
    out = succeed("log", "dump", "--records", str(stopped / "orders-0")).out
    assert "batch at 0: offsets 0 to 1, 2 records" in out
    assert "0: key 'alice', value 'coffee'" in out
    assert "headers [['from', 'web']]" in out
    assert re.search(r"leader epoch \d+ began at offset 0", out)
    assert "topic id" in out


def test_a_log_is_dumped_as_json(stopped: Path) -> None:
    lines = succeed("log", "dump", "--records", "--json", str(stopped / "orders-0")).lines
    assert {line["kind"] for line in lines} >= {"batch", "record", "time_index", "leader_epoch", "topic_id"}
    values = [line["value"] for line in lines if line["kind"] == "record"]
    assert values == ["coffee", "tea"]


def test_the_metadata_log_is_dumped_record_by_record(stopped: Path) -> None:
    out = succeed("log", "dump", "--records", str(stopped / "__cluster_metadata-0")).out
    assert "TopicRecord: name orders, topic_id " in out
    assert "SnapshotHeaderRecord" in out
    assert "leader_id" in out


def test_what_coordinators_wrote_is_dumped_in_words(stopped: Path) -> None:
    lines = succeed("log", "dump", "--records", "--json", str(stopped / "__consumer_offsets-0")).lines
    commits = [line for line in lines if line.get("type") == "OffsetCommit"]
    offsets = {commit["key"]["partition"]: commit["value"]["offset"] for commit in commits}
    assert offsets[0] == 2
    assert {(commit["key"]["group"], commit["key"]["topic"]) for commit in commits} == {("readers", "orders")}


def test_small_files_of_a_directory_are_dumped(stopped: Path) -> None:
    lines = succeed("log", "dump", "--json", str(stopped)).lines
    assert {line["kind"] for line in lines} >= {"meta", "clean_shutdown", "checkpoint"}


def test_a_damaged_log_is_dumped_up_to_the_damage(damaged: Path) -> None:
    log = damaged / "orders-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content + b"\x01torn")
    out = succeed("log", "dump", "--records", str(log)).out
    assert "its checksum does not match" in out
    assert "5 bytes that are not a complete batch" in out


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    assert "is not a log file" in fail("log", "dump", str(tmp_path / "diary.txt"))
    assert "has no files of a log: name a partition directory" in fail("log", "dump", str(tmp_path))


# ottla storage


def test_a_directory_is_formatted_once(tmp_path: Path) -> None:
    made = succeed("storage", "format", "--data", str(tmp_path / "new"))
    assert made.out.startswith(f"formatted {tmp_path / 'new'} for cluster ")
    assert "is already formatted; add --ignore-formatted to skip it" in fail(
        "storage", "format", "--data", str(tmp_path / "new")
    )


def test_a_broken_meta_properties_is_named_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("not what it should be")
    said = fail("storage", "format", "--ignore-formatted", "--data", str(tmp_path))
    assert said.startswith(f"cannot use {tmp_path / 'meta.properties'}: corrupt meta.properties: ")
    assert said.endswith("; fix that, or choose another directory")


def test_a_directory_is_shown(stopped: Path) -> None:
    shown = succeed("storage", "info", str(stopped), "--json").data
    assert (shown["node_id"], shown["stopped_cleanly"], shown["in_use"]) == (0, True, False)
    assert shown["topics"] == 2
    assert "stopped cleanly: yes" in succeed("storage", "info", str(stopped)).out
    assert "use `ottla storage format` to create one" in fail("storage", "info", str(stopped.parent))


def test_a_sound_directory_is_called_sound(stopped: Path) -> None:
    typed = succeed("storage", "verify", str(stopped))
    assert "is not damaged: 4 partitions" in typed.err
    assert succeed("storage", "verify", str(stopped), "--json").data == []


def _flip(path: Path, at: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "checksum": (
        lambda data: _flip(data / "orders-0/00000000000000000000.log"),
        "checksum of the batch at 0",
    ),
    "junk": (lambda data: (data / "junk").mkdir(), "only partition directories may be here"),
    "missing": (lambda data: shutil.rmtree(data / "orders-1"), "its directory is missing"),
    "no id": (lambda data: (data / "orders-1/partition.metadata").unlink(), "it has no partition.metadata"),
    "stray": (
        lambda data: shutil.copytree(data / "orders-1", data / "orders-7"),
        "the metadata does not have this partition",
    ),
    "index": (
        lambda data: (data / "orders-0/00000000000000000000.index").write_bytes(
            bytes((0, 0, 0, 1, 0, 0, 0, 9))
        ),
        "it points to 9, where no batch begins",
    ),
    "snapshot": (lambda data: _flip(next((data / "orders-0").glob("*.snapshot"))), "it cannot be read"),
    "checkpoint": (
        lambda data: (data / "recovery-point-offset-checkpoint").write_text("nonsense"),
        "it cannot be read",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_found_and_named(damaged: Path, damage: str) -> None:
    do, expected = DAMAGES[damage]
    do(damaged)
    typed = run("storage", "verify", str(damaged), "--json")
    assert typed.code == 1
    assert any(expected in problem["what"] for problem in typed.data), typed.data


def test_damaged_metadata_is_told_in_a_sentence(damaged: Path) -> None:
    _flip(damaged / "__cluster_metadata-0" / "00000000000000000000.log", 80)
    assert "the metadata in " in fail("storage", "verify", str(damaged))


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    with ThreadNode(tmp_path) as node:
        script = f"from ottla.cli import main; main(['storage', 'verify', {str(node.data_directory)!r}])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: a server is using {node.data_directory}: stop it first\n",
    )


# ottla graduate


def test_a_sound_directory_may_graduate(stopped: Path, tmp_path: Path) -> None:
    output = tmp_path / "server.properties"
    done = succeed("graduate", str(stopped), "--output", str(output))
    assert f"bin/kafka-server-start.sh {output}" in done.out
    assert f"log.dirs={stopped}\n" in output.read_text()
    assert "already exists" in fail("graduate", str(stopped), "--output", str(output))
    again = succeed("graduate", str(stopped), "--output", str(output), "--force", "--json").data
    assert (again["verified"], again["properties"]) == (False, str(output))


def test_what_is_not_ready_may_not_graduate(damaged: Path, tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "server.properties"))
    (damaged / "junk").mkdir()
    assert "1 problems, the first in " in fail("graduate", str(damaged), *output)
    (damaged / ".kafka_cleanshutdown").unlink()
    assert "was not shut down cleanly: start it with `ottla up --data" in fail(
        "graduate", str(damaged), *output
    )
    assert not (tmp_path / "server.properties").exists()


def test_verifying_says_what_it_needs(stopped: Path, tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "server.properties"))
    said = fail("graduate", str(stopped), *output, "--verify", KAFKA_HOME="", PATH=str(tmp_path))
    assert said == "--verify needs Java 17 or newer: install it, or leave --verify out"


def test_users_and_rules_are_not_thrown_open_on_the_way(tmp_path: Path) -> None:
    root = tmp_path / "secured"
    (tmp_path / "password").write_text("it")
    secured = {"authorizer.class.name": CLASS_NAME, "super.users": "User:ANONYMOUS"}
    with ThreadNode(root, secured) as node:
        succeed("acl", "add", "alice", "read", "topic:payments", bootstrap=node.bootstrap)
        succeed("user", "set", "alice", stdin="a long password\n", bootstrap=node.bootstrap)
    output = tmp_path / "server.properties"
    words = ("graduate", str(node.data_directory), "--output", str(output))
    said = fail(*words)
    assert "access rules (1)" in said
    assert "or add --insecure" in said
    assert not output.exists()

    config = tmp_path / "own.properties"
    config.write_bytes(encode_settings({**secured, "ottla.acks.all.sync": "true", "node.id": "7"}))
    succeed(*words, "--config", str(config))
    written = {item.key: item.value for item in iter_properties(output.read_bytes())}
    assert written.items() >= secured.items()
    assert (written["node.id"], "ottla.acks.all.sync" in written) == ("0", False)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600

    succeed(*words, "--force", "--insecure")
    assert "authorizer" not in output.read_text()


# Profiles and environment


@pytest.fixture
def profiles(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text('[profiles.default]\n"bootstrap.servers" = "127.0.0.1:1"\n[profiles.other]\n"x" = "y"\n')
    return str(path)


def test_what_is_typed_is_nearer_than_what_the_shell_was_set_up_for(profiles: str) -> None:
    around = {"OTTLA_CONFIG": profiles, "OTTLA_BOOTSTRAP": "127.0.0.1:3"}
    named = "--bootstrap=127.0.0.1:4", "--property=bootstrap.servers=127.0.0.1:4"
    assert "no broker answers at 127.0.0.1:3;" in fail("topic", "list", **around)
    assert "no broker answers at 127.0.0.1:1;" in fail("topic", "list", "--profile=default", **around)
    assert "no broker answers at 127.0.0.1:3;" in fail("topic", "list", OTTLA_PROFILE="default", **around)
    for option in named:
        assert "no broker answers at 127.0.0.1:4;" in fail("topic", "list", option, **around)


def test_a_profile_names_the_cluster(profiles: str) -> None:
    assert "no broker answers at 127.0.0.1:1;" in fail("topic", "list", OTTLA_CONFIG=profiles)
    assert "no broker answers at 127.0.0.1:2;" in fail(
        "topic", "list", "--bootstrap=127.0.0.1:2", OTTLA_CONFIG=profiles
    )
    assert "unknown property 'x'" in fail("topic", "list", "--profile=other", OTTLA_CONFIG=profiles)
    said = fail("topic", "list", OTTLA_CONFIG=profiles, OTTLA_PROFILE="third")
    assert said.endswith("config.toml has no profile 'third'; it has: default, other")


def test_a_config_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    said = fail("topic", "list", OTTLA_CONFIG=str(tmp_path / "typo.toml"))
    assert said.endswith("typo.toml, which does not exist; correct it, or unset it")


def test_the_environment_gives_properties(profiles: str) -> None:
    said = fail("topic", "list", OTTLA_CONFIG=profiles, OTTLA_PROPERTY_REQUEST_TIMEOUT_MS="soon")
    assert said.startswith("request.timeout.ms is 'soon'")


def test_a_config_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("profiles = [")
    assert "cannot read" in fail("topic", "list", OTTLA_CONFIG=str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text("profiles = 1")
    assert "must have tables such as [profiles.production]" in fail(
        "topic", "list", OTTLA_CONFIG=str(tmp_path / "config.toml")
    )


def test_wrong_usage_exits_with_2() -> None:
    for words in (("topic", "list", "--property=x"), ("consume", "t", "-o", "nowhere"), ("nonsense",)):
        assert run(*words).code == 2
    assert "unknown part %x" in run("consume", "t", "-f", "%x").err
    assert "'nonsense' is not a time" in run("group", "reset", "g", "--to-time", "nonsense").err


# The rest


def test_several_nodes_need_ports_and_share_a_config_file(tmp_path: Path) -> None:
    assert "choose one from 1 to 64000" in fail("up", "--nodes", "3", "--port", "0", "--data", str(tmp_path))
    assert "--join is for one node" in run("up", "--nodes", "3", "--secure", "--join", "token").err
    assert "exclude each other" in fail("up", "--nodes", "3", "--secure", "--insecure")
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\nnum.partitions=5\n")
    told = fail("up", "--nodes", "3", "--config", str(file), "--data", str(tmp_path))
    assert "remove node.id, or run each node with a file of its own" in told
    file.write_text("num.partitions=\\u12\n")
    told = fail("up", "--nodes", "3", "--config", str(file), "--data", str(tmp_path))
    assert f"cannot use {file}: line 1" in told


def test_the_version_is_told() -> None:
    assert succeed("version", "--json").data["ottla"] == __version__
    assert __version__ in succeed("--version").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    script = succeed("completion", shell).out
    assert "_OTTLA_COMPLETE" in script
    words = {"COMP_WORDS": "ottla to", "COMP_CWORD": "1"}
    if shell == "fish":
        words = {"COMP_WORDS": "ottla", "COMP_CWORD": "to"}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ottla"))],
        env={**os.environ, "_OTTLA_COMPLETE": f"{shell}_complete", **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "topic" in done.stdout


# Small modules without imports of their own. Options show the names that they have.
NAMES_OF_CHOICES = (
    "ottla.records",
    "ottla.records.attributes",
    "ottla.records.errors",
    "ottla.records.json_records",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_but_the_command(command: str) -> None:
    """What keeps every command's start below 150 ms: only click, and the command's own small modules."""
    script = (
        "import json, sys\nfrom ottla.cli import main\n"
        f"try: main([{command!r}, '--help'])\n"
        "except SystemExit: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    heavy = [
        name
        for name in json.loads(done.stderr.splitlines()[-1])
        if (name.startswith("ottla.") and not name.startswith("ottla.cli")) or name in ("asyncio", "pyspark")
        if name not in NAMES_OF_CHOICES
    ]
    assert heavy == []


def test_a_mistyped_command_is_named_with_the_nearest_one() -> None:
    typed = run("topci")
    assert typed.code == 2
    assert typed.err.endswith("Error: No such command 'topci'. Did you mean 'topic'?\n")


@pytest.mark.parametrize(
    "words",
    [("topic", "truncate", "a"), ("group", "delete", "a"), ("txn", "abort", "a")],
)
def test_who_cannot_be_asked_is_told_to_say_yes(words: tuple[str, ...]) -> None:
    typed = run(*words, bootstrap="127.0.0.1:1", stdin="")
    assert typed.code == 1
    assert typed.err.endswith(
        "Error: nothing was done, because the question was not answered; add --yes to skip it\n"
    )


def test_times_are_read_as_people_write_them() -> None:
    assert parse_time_ms("1234", "--x") == 1234
    assert parse_time_ms("2026-01-31T12:00+00:00", "--x") == 1769860800000
    assert parse_time_ms("1h", "--x") - parse_time_ms("2h", "--x") >= 3_500_000
