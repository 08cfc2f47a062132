"""A node on damaged, missing or foreign files: what it refuses, what it tells, and what it goes on with."""

import atexit
import json
import re
import shutil
import socket
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.cluster.test_housekeeping import run_until
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.ottla_node import OttlaNode, ottla_command
from tests.support.plain_client import PlainClient

from ottla.broker.lifecycle import repairing
from ottla.metadata.configs.load import load_node_config
from ottla.records.batch import iter_batches
from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode

METADATA = "__cluster_metadata-0/00000000000000000000.log"
MARK = ".kafka_cleanshutdown"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(ottla_command(*arguments), capture_output=True, text=True, timeout=120)


def written(root: Path, *, is_clean: bool = True, settings: dict[str, str] | None = None) -> OttlaNode:
    """Return a node that has written two topics and does not run."""
    node = OttlaNode(root, settings)
    if settings is None:
        shutil.copytree(_written_once(is_clean), node.data_directory)
    else:
        _write(node, is_clean)
    return node


@cache
def _written_once(is_clean: bool) -> Path:
    """Return what such a node leaves, to be copied: most tests are about what becomes of it then."""
    directory = TemporaryDirectory(prefix="ottla-written-")
    atexit.register(directory.cleanup)
    node = OttlaNode(Path(directory.name))
    _write(node, is_clean)
    return node.data_directory


def _write(node: OttlaNode, is_clean: bool) -> None:
    with node:
        with PlainClient(node.bootstrap) as client:
            for topic in ("orders", "payments"):
                create_topic(client, topic, 2)
                for number in range(10):
                    produce(client, topic, batch_of(b"%d" % number), number % 2)
        if is_clean:
            node.stop()
        else:
            node.kill()


def refusal(node: OttlaNode, *options: str) -> str:
    """Start a node that refuses, and return its sentence."""
    done = run(*node.command()[1:], *options)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return sentence


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def check_all_there(node: OttlaNode) -> None:
    with node, PlainClient(node.bootstrap) as client:
        for topic in ("orders", "payments"):
            for partition in range(2):
                expected = [b"%d" % number for number in range(partition, 10, 2)]
                assert fetch_all(client, topic, partition) == expected


@pytest.mark.parametrize("is_clean", [True, False])
def test_one_flipped_bit_in_the_metadata_stops_the_start_and_can_be_repaired(
    tmp_path: Path, is_clean: bool
) -> None:
    node = written(tmp_path, is_clean=is_clean)
    log = node.data_directory / METADATA
    position = log.read_bytes().index(b"orders")
    flip(log, position)
    damaged = log.read_bytes()
    sentence = refusal(node)
    assert str(log) in sentence
    assert re.search(r"bytes at position \d+ of .* offsets \d+ to \d+, and \d+ valid batches", sentence)
    assert "ottla storage repair" in sentence
    assert log.read_bytes() == damaged
    assert (node.data_directory / MARK).exists() == is_clean
    assert not list(node.data_directory.glob("*-stray"))

    done = run("storage", "repair", "--data", str(node.data_directory))
    assert (done.returncode, log.read_bytes()) == (1, damaged), "nobody has agreed"
    done = run("storage", "repair", "--data", str(node.data_directory), "--yes")
    assert done.returncode == 0, done.stderr
    assert "restored orders with partitions 0, 1" in done.stdout
    assert log.with_name(log.name + ".damaged").read_bytes() == damaged
    check_all_there(node)
    done = run("storage", "repair", "--data", str(node.data_directory))
    assert (done.returncode, done.stdout) == (0, "the metadata is not damaged: nothing to repair\n")


def test_metadata_that_is_gone_stops_the_start_and_topics_are_put_back(tmp_path: Path) -> None:
    node = written(tmp_path)
    shutil.rmtree(node.data_directory / "__cluster_metadata-0")
    assert "the metadata is lost" in refusal(node)
    assert run("storage", "repair", "--data", str(node.data_directory), "--yes").returncode == 0
    check_all_there(node)


def test_a_repair_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    node = written(tmp_path)
    flip(node.data_directory / METADATA, (node.data_directory / METADATA).read_bytes().index(b"orders"))
    loaded = load_node_config(b"", {"log.dirs": str(node.data_directory)})

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repairing._Repair, "_put_back", interrupt)
        with pytest.raises(KeyboardInterrupt):
            repairing.repair_metadata(loaded.configs)
    assert "was interrupted" in refusal(node)
    done = run("storage", "repair", "--data", str(node.data_directory), "--yes")
    assert "restored orders with partitions" in done.stdout
    check_all_there(node)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_node_of_a_quorum_of_several_is_not_repaired_alone(tmp_path: Path) -> None:
    node = written(tmp_path)
    flip(node.data_directory / METADATA, (node.data_directory / METADATA).read_bytes().index(b"orders"))
    before = contents(node.data_directory)
    voters = {"controller.quorum.voters": "0@127.0.0.1:9093,1@127.0.0.1:9094"}
    loaded = load_node_config(b"", {"log.dirs": str(node.data_directory), **voters})
    with pytest.raises(repairing.RepairFailure, match="a quorum of several nodes"):
        repairing.repair_metadata(loaded.configs)
    assert contents(node.data_directory) == before


def test_other_voters_that_a_snapshot_names_keep_a_node_from_repairing_itself(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = tmp_path / "server.properties"
    settings.write_text(
        f"node.id=0\nprocess.roles=broker,controller\nlog.dirs={data}\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
    )
    initial = "0@127.0.0.1:9093:0z763HZ4QUaZdTy6uVgG1g,1@127.0.0.1:9094:1z763HZ4QUaZdTy6uVgG1g"
    options = ("--initial-controllers", initial, "--cluster-id", "AAAAAAAAAAAAAAAAAAAABA")
    done = run("storage", "format", "--config", str(settings), *options)
    assert done.returncode == 0, done.stderr
    (data / "__cluster_metadata-0/quorum-state").write_bytes(b"garbage")
    before = contents(data)
    done = run("storage", "repair", "--config", str(settings), "--yes")
    assert done.returncode == 1
    assert "a quorum of several nodes" in done.stderr
    # The look for damage has made the empty files of a log.
    assert contents(data).items() >= before.items()


def test_garbage_in_the_small_files_gives_a_sentence(tmp_path: Path) -> None:
    node = written(tmp_path)
    for name in ("quorum-state", "00000000000000000000-0000000000.checkpoint"):
        path = node.data_directory / "__cluster_metadata-0" / name
        content = path.read_bytes()
        path.write_bytes(b"\xff" * 200)
        assert str(path) in refusal(node)
        path.write_bytes(content)
    meta = node.data_directory / "meta.properties"
    content = meta.read_bytes()
    for garbage in (b"", b"\xff\xfe", b"version=1\n", b"version=x\n", content.partition(b"directory.id")[0]):
        meta.write_bytes(garbage)
        assert "meta.properties" in refusal(node)
    meta.write_bytes(content)
    assert (node.data_directory / MARK).exists(), "a start that is refused changes nothing"
    check_all_there(node)


def test_a_start_that_is_refused_leaves_the_mark_of_a_clean_stop(tmp_path: Path) -> None:
    node = written(tmp_path / "node")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", node.port))
        taken.listen()
        refusal(node)
    assert (node.data_directory / MARK).exists()
    foreign = OttlaNode(tmp_path / "foreign", {"node.id": "7"})
    with foreign:
        pass
    both = f"log.dirs={node.data_directory},{foreign.data_directory}"
    done = run("up", "--port", str(node.port), "--set", both)
    assert done.returncode == 1
    assert (node.data_directory / MARK).exists()
    assert (foreign.data_directory / MARK).exists()
    output = str(tmp_path / "server.properties")
    assert run("graduate", str(node.data_directory), "--output", output).returncode == 0


def test_a_port_of_metrics_that_is_taken_ends_in_a_clean_stop(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        node = OttlaNode(tmp_path, {"ottla.metrics.port": str(taken.getsockname()[1])})
        assert "cannot serve metrics" in refusal(node)
    assert (node.data_directory / MARK).exists()


def two_directories(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}


def test_a_directory_that_is_empty_at_one_start_stops_it(tmp_path: Path) -> None:
    node = written(tmp_path, settings=two_directories(tmp_path))
    (tmp_path / "two").rename(tmp_path / "away")
    for is_there in (False, True):
        if is_there:
            (tmp_path / "two").mkdir()
        sentence = refusal(node)
        assert f"{tmp_path / 'two'} is empty" in sentence
        assert "--format-empty" in sentence
    (tmp_path / "two").rmdir()
    (tmp_path / "away").rename(tmp_path / "two")
    check_all_there(node)

    shutil.rmtree(tmp_path / "two")
    replaced = OttlaNode(tmp_path, node.settings, options=["--format-empty"])
    with replaced, PlainClient(replaced.bootstrap) as client:
        create_topic(client, "new", 2)
        for partition in range(2):
            assert produce(client, "new", batch_of(b"v"), partition).error_code is ErrorCode.NONE


def test_a_directory_that_is_new_is_formatted_without_a_question(tmp_path: Path) -> None:
    node = written(tmp_path, settings={"log.dirs": str(tmp_path / "one")})
    check_all_there(OttlaNode(tmp_path, two_directories(tmp_path)))
    assert (tmp_path / "two" / "meta.properties").exists()
    assert node.read_log().count("formatted") == 2


def test_no_write_to_a_directory_that_was_removed_is_acknowledged(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path)
    node.start()
    process = node.process
    assert process is not None
    with PlainClient(node.bootstrap) as client:
        create_topic(client, "orders")
        assert produce(client, "orders", batch_of(b"kept")).error_code is ErrorCode.NONE
        shutil.rmtree(node.data_directory)
        try:
            for _ in range(25):
                assert produce(client, "orders", batch_of(b"lost")).error_code is not ErrorCode.NONE
        except OSError:
            pass  # It has ended by now.
    assert process.wait(60) == 1
    assert process.stdout is not None
    process.stdout.close()
    assert "was removed" in node.read_log()
    assert "Traceback" not in node.read_log()


def test_a_directory_that_was_removed_goes_offline_and_the_others_serve(tmp_path: Path) -> None:
    with in_process_node(tmp_path, two_directories(tmp_path)) as node:
        client = InProcessClient(node)
        create_topic(client, "t", partitions=2)
        numbers = {
            name: next(int(path.name.removeprefix("t-")) for path in (tmp_path / name).glob("t-*"))
            for name in ("one", "two")
        }
        shutil.rmtree(tmp_path / "two")
        assert (
            produce(client, "t", batch_of(b"v"), numbers["two"]).error_code is ErrorCode.KAFKA_STORAGE_ERROR
        )
        assert produce(client, "t", batch_of(b"v"), numbers["one"]).error_code is ErrorCode.NONE


def test_a_directory_that_is_replaced_while_nobody_writes_goes_offline(tmp_path: Path) -> None:
    with in_process_node(tmp_path, two_directories(tmp_path)) as node:
        (tmp_path / "two").rename(tmp_path / "away")
        (tmp_path / "two").mkdir()
        node.housekeeping.start()
        run_until(node, lambda: node.broker.directories.directories[1].is_offline)


def test_the_directory_of_a_partition_that_is_missing_is_told(tmp_path: Path) -> None:
    for is_clean in (True, False):
        node = written(tmp_path / str(is_clean), is_clean=is_clean)
        shutil.rmtree(node.data_directory / "orders-1")
        with node, PlainClient(node.bootstrap) as client:
            assert "orders-1 is damaged: offsets 0 to 4 are lost" in node.read_log()
            assert produce(client, "orders", batch_of(b"next"), 1).base_offset == 5
            assert fetch_all(client, "orders", 0) == [b"0", b"2", b"4", b"6", b"8"]


def test_a_partition_that_does_not_say_of_which_topic_it_is_is_not_set_aside(tmp_path: Path) -> None:
    for is_clean in (True, False):
        node = written(tmp_path / str(is_clean), is_clean=is_clean)
        (node.data_directory / "orders-0" / "partition.metadata").write_bytes(b"")
        (node.data_directory / "payments-1" / "partition.metadata").unlink()
        check_all_there(node)


def test_what_was_lost_is_told_verified_and_salvaged(tmp_path: Path) -> None:
    node = written(tmp_path, is_clean=False)
    directory = node.data_directory / "orders-0"
    log = directory / "00000000000000000000.log"
    first, second, *_ = iter_batches(memoryview(log.read_bytes()))
    flip(log, first.size_bytes + second.size_bytes - 2)
    found = run("log", "verify", str(directory))
    assert found.returncode == 1
    assert f"{second.size_bytes} bytes at position {first.size_bytes}" in found.stdout
    assert "offsets 1 to 1" in found.stdout

    with node, PlainClient(node.bootstrap) as client:
        assert fetch_all(client, "orders") == [b"0", b"4", b"6", b"8"]
        assert produce(client, "orders", batch_of(b"next")).base_offset == 5
        said = node.read_log()
        assert "orders-0 is damaged: offsets 1 to 1 are lost" in said
        assert f"{second.size_bytes} bytes at {first.size_bytes} of {log}" in said
        assert "stop it first" in run("log", "verify", str(directory)).stderr
    assert run("log", "verify", str(node.data_directory)).returncode == 0

    sound = run("log", "salvage", str(directory))
    assert (sound.returncode, sound.stdout) == (0, "")
    assert "1 more are in batches with wrong checksums" in sound.stderr
    salvaged = run("log", "salvage", "--damaged", str(directory))
    record = json.loads(salvaged.stdout)
    assert (record["topic"], record["partition"], record["offset"]) == ("orders", 0, 1)
    whole = run("log", "salvage", str(log))
    values = [json.loads(line)["value"] for line in whole.stdout.splitlines()]
    assert values == ["0", "4", "6", "8", "next"]
    with node:
        again = ["produce", "payments", "--format", "json", "-p", "1", "--bootstrap", node.bootstrap]
        subprocess.run(ottla_command(*again), input=whole.stdout, text=True, check=True, timeout=60)
        with PlainClient(node.bootstrap) as client:
            assert fetch_all(client, "payments", 1)[5:] == [b"0", b"4", b"6", b"8", b"next"]
