"""Nodes that join a cluster and leave it, by commands alone."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.typing import fail, run, succeed
from tests.support.ottla_node import ottla_command

from ottla.testing.node import ThreadNode
from ottla.testing.ports import free_port
from ottla.testing.process_cluster import ProcessCluster

_PATIENCE_S = 120


@contextmanager
def running(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a node, and stop it in order."""
    process = subprocess.Popen(ottla_command(*words), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert process.wait(_PATIENCE_S) == 0
        assert process.stdout is not None
        process.stdout.close()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_id_of_a_cluster_alone_founds_no_second_one(tmp_path: Path) -> None:
    words = ("up", "--data", str(tmp_path / "n4"), "--cluster-id", "b3R0bGEtdGVzdC1jbHVzdA", "--port", "0")
    said = fail(*words)
    assert "would found a second cluster of that id: add --join HOST:PORT" in said
    assert not (tmp_path / "n4").exists()


def test_a_node_on_its_own_cannot_be_joined(tmp_path: Path) -> None:
    with ThreadNode(tmp_path / "node") as node:
        said = fail("up", "--data", str(tmp_path / "n4"), "--join", node.bootstrap, "--port", "0")
    assert "does not reach them" in said
    assert not list(tmp_path.glob("n4*")), "nothing is left of it"
    assert "is not HOST:PORT" in fail("up", "--data", str(tmp_path / "n4"), "--join", "nothing")


def test_several_nodes_are_not_started_beside_some_that_run(tmp_path: Path) -> None:
    with ThreadNode(tmp_path / "x") as node:
        data = tmp_path / "all"
        (data / "node-2").parent.mkdir()
        (data / "node-2").symlink_to(node.data_directory)
        # In another process: the locks of this one do not hold it off.
        words = ottla_command("up", "--nodes", "3", "--data", str(data), "--port", str(free_port()))
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        assert done.returncode == 1
        assert (
            f"process {os.getpid()} is using {data / 'node-2'}: stop that first; no node was started"
            in done.stderr
        )
    assert sorted(path.name for path in data.iterdir()) == ["node-2"]


@pytest.mark.thorough(guard="tests/cluster/test_joining.py::test_a_node_on_its_own_cannot_be_joined")
def test_a_node_joins_by_one_command_and_leaves_by_another(tmp_path: Path) -> None:
    with ProcessCluster(tmp_path / "cluster") as cluster:
        succeed("topic", "create", "orders", "-p", "4", "-r", "2", bootstrap=cluster.bootstrap)
        data = tmp_path / "fourth"
        first = ("up", "--data", str(data), "--port", str(free_port()))
        with running(*first, "--join", cluster.bootstrap.partition(",")[0]):
            pass
        # Later starts know the cluster.
        with running(*first) as node:
            rows = succeed("cluster", "describe", "--json", bootstrap=cluster.bootstrap).data["nodes"]
            assert {row["node"]: row["state"] for row in rows} == dict.fromkeys((1, 2, 3, 4), "up")
            succeed("cluster", "balance", "--yes", bootstrap=cluster.bootstrap)
            assert run("health", bootstrap=cluster.bootstrap).code in (0, 10)
            removing = subprocess.Popen(
                [*ottla_command("cluster", "remove", "4", "--yes"), "--bootstrap", cluster.bootstrap],
                stderr=subprocess.PIPE,
                text=True,
            )
            assert removing.stderr is not None
            while "stop it" not in (line := removing.stderr.readline()):
                assert line, "it waits for the node to be stopped"
            node.send_signal(signal.SIGTERM)
            assert node.wait(_PATIENCE_S) == 0
            assert removing.wait(_PATIENCE_S) == 0
            removing.stderr.close()
        rows = succeed("cluster", "describe", "--json", bootstrap=cluster.bootstrap).data["nodes"]
        assert sorted(row["node"] for row in rows) == [1, 2, 3]
        until(lambda: run("health", bootstrap=cluster.bootstrap).code == 0)
