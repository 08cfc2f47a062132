"""Formatted by Apache Kafka's own tool or by ours, directories are the same, and the same is refused."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.java.java_tools import JavaTools
from tests.java.oracle import Oracle

from ottla.broker.lifecycle.format_options import FormatFailure, FormatOptions
from ottla.broker.lifecycle.formatting import format_missing
from ottla.metadata.configs.load import load_node_config
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.snapshot_file import BOOTSTRAP_FILE, FORMAT_SNAPSHOT, Snapshot, decode_snapshot
from ottla.records.batch import iter_batches
from ottla.runtime.disk import RealDisk
from ottla.storage.log_dirs.meta_properties import decode_meta_properties

CLUSTER_ID = "b3R0bGEtdGVzdC1jbHVzdA"
FIRST, SECOND = "3n9LwqijR0S7KDdmqZP55w", "YW5vdGhlci1kaXJlY3Rvcg"
INITIAL = f"1@localhost:9093:{FIRST},2@other-host:9193:{SECOND}"
SNAPSHOT = f"{METADATA_DIRECTORY}/{FORMAT_SNAPSHOT.file_name}"
SALT = '"MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="'
SALTED = '"mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE="'
CONTROLLER = {
    "process.roles": "controller",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093,localhost:9193",
}
STATIC = {**CONTROLLER, "controller.quorum.voters": "1@localhost:9093,2@localhost:9193"}
BROKER = {
    "process.roles": "broker",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}


@dataclass
class Case:
    properties: dict[str, str]
    options: FormatOptions


CASES = {
    "standalone": Case(CONTROLLER, FormatOptions(standalone=True)),
    "initial": Case(CONTROLLER, FormatOptions(initial_controllers=INITIAL)),
    "initial, of others": Case(CONTROLLER, FormatOptions(initial_controllers=f"2@localhost:9193:{SECOND}")),
    "initial, on a broker": Case(BROKER, FormatOptions(initial_controllers=INITIAL)),
    "joins later": Case(CONTROLLER, FormatOptions(no_initial_controllers=True)),
    "broker": Case(BROKER, FormatOptions()),
    "broker of a dynamic quorum": Case(BROKER, FormatOptions(no_initial_controllers=True)),
    "static": Case(STATIC, FormatOptions()),
    "static, and joins later": Case(STATIC, FormatOptions(no_initial_controllers=True)),
    "older": Case(STATIC, FormatOptions(release_version="3.9")),
    "step of a release": Case(STATIC, FormatOptions(release_version="4.0-IV2")),
    "patch of a release": Case(STATIC, FormatOptions(release_version="4.1.1")),
    "oldest": Case(STATIC, FormatOptions(release_version="3.3-IV3")),
    "features": Case(STATIC, FormatOptions(features=("group.version=0", "transaction.version=1"))),
    "metadata.version as feature": Case(STATIC, FormatOptions(features=("metadata.version=25",))),
    "scram": Case(
        STATIC,
        FormatOptions(
            scram_credentials=(
                f"SCRAM-SHA-256=[name=alice,salt={SALT},saltedpassword={SALTED},iterations=8192]",
                f"SCRAM-SHA-512=[name=bob,salt={SALT},password=bob-secret]",
            )
        ),
    ),
}

REFUSED = {
    "standalone broker": Case(BROKER, FormatOptions(standalone=True)),
    "controller without anything": Case(CONTROLLER, FormatOptions()),
    "standalone and static": Case(STATIC, FormatOptions(standalone=True)),
    "initial and static": Case(STATIC, FormatOptions(initial_controllers=INITIAL)),
    "unknown feature": Case(STATIC, FormatOptions(features=("no.such.version=1",))),
    "level too high": Case(STATIC, FormatOptions(features=("group.version=9",))),
    "unknown release": Case(STATIC, FormatOptions(release_version="9.9")),
    "kraft.version 1, static": Case(STATIC, FormatOptions(features=("kraft.version=1",))),
    "kraft.version 0, dynamic": Case(
        CONTROLLER, FormatOptions(standalone=True, features=("kraft.version=0",))
    ),
    "both versions": Case(STATIC, FormatOptions(release_version="4.0", features=("metadata.version=25",))),
    "unmet need": Case(
        STATIC, FormatOptions(release_version="3.9", features=("eligible.leader.replicas.version=1",))
    ),
    "bad directory id": Case(CONTROLLER, FormatOptions(initial_controllers="1@localhost:9093:abc")),
    "no directory id": Case(CONTROLLER, FormatOptions(initial_controllers="1@localhost:9093")),
    "few iterations": Case(
        STATIC,
        FormatOptions(scram_credentials=("SCRAM-SHA-256=[name=alice,password=a,iterations=1024]",)),
    ),
    "no password": Case(STATIC, FormatOptions(scram_credentials=("SCRAM-SHA-256=[name=alice]",))),
    "no name": Case(STATIC, FormatOptions(scram_credentials=("SCRAM-SHA-256=[password=alice]",))),
    "no such mechanism": Case(
        STATIC, FormatOptions(scram_credentials=("SCRAM-SHA-1=[name=alice,password=a]",))
    ),
    "scram too early": Case(
        STATIC,
        FormatOptions(release_version="3.4", scram_credentials=("SCRAM-SHA-256=[name=alice,password=a]",)),
    ),
}


@pytest.fixture(scope="module")
def storage_tool() -> Iterator[JavaTools]:
    with JavaTools() as tools:
        yield tools


class Formatter:
    """Apache Kafka's own tool, or what it did."""

    def __init__(self, oracle: Oracle, request: pytest.FixtureRequest) -> None:
        self._oracle = oracle
        self._request = request

    def run(self, directory: Path, properties: dict[str, str], *arguments: str) -> tuple[int, str]:
        """Format a directory. Returns the exit code of the tool and what it said."""
        settings = directory.with_suffix(".properties")
        settings.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = ["format", "-t", CLUSTER_ID, "-c", str(settings), *arguments]

        def run_tool() -> str:
            tools = self._request.getfixturevalue("storage_tool")
            code, said = tools.run("kafka.tools.StorageTool", *command)
            files = {
                str(path): None if path.is_dir() else path.read_bytes().hex() for path in _paths(directory)
            }
            return json.dumps([code, said, files])

        question = json.dumps([command, properties])
        code, said, files = json.loads(self._oracle.answer(question, run_tool, directory.parent))
        for path, content in files.items():
            if content is None:
                Path(path).mkdir(exist_ok=True)
            else:
                Path(path).write_bytes(bytes.fromhex(content))
        return code, said


def _paths(directory: Path) -> list[Path]:
    return [directory, *sorted(directory.rglob("*"))] if directory.exists() else []


def _content(path: Path) -> str | None:
    return None if path.is_dir() else path.read_bytes().hex()


@pytest.fixture
def tools(oracle: Oracle, request: pytest.FixtureRequest) -> Formatter:
    return Formatter(oracle, request)


@pytest.mark.parametrize("name", CASES)
def test_formatted_directories_are_the_same(name: str, tools: Formatter, tmp_path: Path) -> None:
    case = CASES[name]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    code, said = _format_theirs(tools, case, theirs)
    assert code == 0, said
    # What is random is given to ours as theirs has it.
    meta = decode_meta_properties((theirs / "meta.properties").read_bytes())
    options = case.options._replace(cluster_id=CLUSTER_ID, directory_id=str(meta.directory_id))
    _format_ours(case, ours, options, 0)

    assert decode_meta_properties((ours / "meta.properties").read_bytes()) == meta
    assert _names(ours) == _names(theirs)
    for number, (now_ms, batch) in enumerate(_batches(theirs / BOOTSTRAP_FILE)):
        # Each of their batches has a time of its own.
        _format_ours(case, tmp_path / str(number), options, now_ms)
        assert _batches(tmp_path / str(number) / BOOTSTRAP_FILE)[number] == (now_ms, batch)
    if (theirs / SNAPSHOT).exists():
        assert _timeless(ours) == _timeless(theirs)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_both(name: str, tools: Formatter, tmp_path: Path) -> None:
    case = REFUSED[name]
    code, said = _format_theirs(tools, case, tmp_path / "theirs")
    assert code != 0, said
    with pytest.raises(FormatFailure):
        _format_ours(case, tmp_path / "ours", case.options._replace(cluster_id=CLUSTER_ID), 0)
    assert not (tmp_path / "ours").exists()


def _format_theirs(tools: Formatter, case: Case, directory: Path) -> tuple[int, str]:
    properties = {"node.id": "1", **case.properties, "log.dirs": str(directory)}
    options = case.options
    arguments = ["--standalone"] if options.standalone else []
    arguments += ["--no-initial-controllers"] if options.no_initial_controllers else []
    if options.initial_controllers is not None:
        arguments += ["--initial-controllers", options.initial_controllers]
    if options.release_version is not None:
        arguments += ["--release-version", options.release_version]
    for feature in options.features:
        arguments += ["--feature", feature]
    for credential in options.scram_credentials:
        arguments += ["--add-scram", credential]
    return tools.run(directory, properties, *arguments)


def _format_ours(case: Case, directory: Path, options: FormatOptions, now_ms: int) -> None:
    loaded = load_node_config(b"", {"node.id": "1", **case.properties, "log.dirs": str(directory)})
    format_missing(RealDisk(), loaded.config, [str(directory)], random.Random(1), now_ms, options)


def _batches(path: Path) -> list[tuple[int, bytes]]:
    """Return the time and the bytes of each batch."""
    return [(batch.max_timestamp, bytes(batch.view)) for batch in iter_batches(memoryview(path.read_bytes()))]


def _timeless(directory: Path) -> tuple[int, Snapshot]:
    content = (directory / SNAPSHOT).read_bytes()
    snapshot = decode_snapshot(content, SNAPSHOT)
    return len(content), snapshot._replace(last_contained_timestamp_ms=0)


def _names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}
