"""Disks that are full, broken or read-only: who is told what, and what goes on."""

import errno
import os
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_housekeeping import run_until
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.broker.lifecycle.startup import Node
from ottla.runtime.kernel_syncs import KernelSyncs
from ottla.storage.log_dirs import epoch_note
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest

FILE_BYTES_MAX = 100_000


class Faults:
    """Lets system calls on the files below a directory fail, and counts how often they were tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._below: Path | None = None
        self._failing: dict[str, int] = {}
        self.tried: Counter[str] = Counter()
        for name in ("pwrite", "pwritev", "fdatasync", "fsync"):
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))
        monkeypatch.setattr(KernelSyncs, "begin", self._wrap_begin(KernelSyncs.begin))

    def begin(self, below: Path, **failing: int) -> None:
        """From now on, let calls fail with the error number given by their names."""
        self._below, self._failing = below, failing

    def _wrap_begin(self, begin: Callable[[KernelSyncs, int, object], bool]) -> Callable[..., bool]:
        """Let the syncs that the kernel does by itself fail like those of a thread."""

        def maybe_fail(syncs: KernelSyncs, descriptor: int, what: object) -> bool:
            number = self._failing.get("fdatasync")
            if number is None or not self._is_below(descriptor):
                return begin(syncs, descriptor, what)
            self.tried["fdatasync"] += 1
            syncs._loop.call_soon(syncs._done, [(what, number)])
            return True

        return maybe_fail

    def _wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def maybe_fail(descriptor: int, *arguments: Any) -> Any:
            number = self._failing.get(name)
            if number is not None and self._is_below(descriptor):
                # One file is written even so: it tells the next start that the disk has failed.
                if _path_of(descriptor).name != epoch_note.FILE:
                    self.tried[name] += 1
                raise OSError(number, os.strerror(number))
            return call(descriptor, *arguments)

        return maybe_fail

    def _is_below(self, descriptor: int) -> bool:
        assert self._below is not None
        return _path_of(descriptor).is_relative_to(self._below)


def _path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@pytest.fixture(name="faults")
def faults_of_system_calls(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def two_directories(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}


def partition_in(directory: Path) -> int:
    """Return the number of the partition of topic `t` that lies in a directory."""
    return next(int(path.name.removeprefix("t-")) for path in directory.glob("t-*"))


@pytest.mark.parametrize(
    "failing",
    [
        {"pwrite": errno.ENOSPC, "pwritev": errno.ENOSPC},
        {"pwrite": errno.EIO, "pwritev": errno.EIO},
        {"pwrite": errno.EROFS, "pwritev": errno.EROFS},
        {"fdatasync": errno.EIO},
    ],
    ids=["full", "broken", "read-only", "sync fails"],
)
def test_a_directory_that_fails_goes_offline_and_the_others_serve(
    tmp_path: Path, faults: Faults, failing: dict[str, int]
) -> None:
    with in_process_node(tmp_path, two_directories(tmp_path)) as node:
        client = InProcessClient(node)
        create_topic(client, "t", partitions=2)
        broken, whole = partition_in(tmp_path / "two"), partition_in(tmp_path / "one")
        assert produce(client, "t", batch_of(b"kept"), broken).error_code is ErrorCode.NONE
        faults.begin(tmp_path / "two", **failing)

        for _ in range(3):
            answer = produce(client, "t", batch_of(b"lost"), broken)
            assert answer.error_code is ErrorCode.KAFKA_STORAGE_ERROR
        assert sum(faults.tried.values()) == 1, "a disk that failed is not tried again"
        assert produce(client, "t", batch_of(b"served"), whole).error_code is ErrorCode.NONE

        node.housekeeping._look_at_directories()
        run_until(node, lambda: leader_of(node, broken) == -1)
        results = client.ask(DescribeLogDirsRequest(topics=None)).results
        assert {Path(one.log_dir).name: one.error_code for one in results} == {
            "one": ErrorCode.NONE,
            "two": ErrorCode.KAFKA_STORAGE_ERROR,
        }
        assert produce(client, "t", batch_of(b"served"), whole).error_code is ErrorCode.NONE
        create_topic(client, "new", partitions=2)
        assert len(list((tmp_path / "one").glob("new-*"))) == 2


def leader_of(node: Node, number: int) -> int:
    topic = node.broker.image.topics.find("t")
    assert topic is not None
    leader: int = topic.partitions[number].leader
    return leader


def test_the_other_directories_come_back_without_one_that_is_gone(tmp_path: Path, faults: Faults) -> None:
    with in_process_node(tmp_path, two_directories(tmp_path)) as node:
        client = InProcessClient(node)
        create_topic(client, "t", partitions=2)
        broken, whole = partition_in(tmp_path / "two"), partition_in(tmp_path / "one")
        produce(client, "t", batch_of(b"one"), whole)
        faults.begin(tmp_path / "two", pwrite=errno.EIO, pwritev=errno.EIO)
        produce(client, "t", batch_of(b"two"), broken)
    faults.begin(tmp_path / "nowhere")
    assert not (tmp_path / "two" / ".kafka_cleanshutdown").exists(), "what failed did not stop cleanly"
    assert (tmp_path / "one" / ".kafka_cleanshutdown").exists()
    with in_process_node(tmp_path, two_directories(tmp_path)) as node:
        client = InProcessClient(node)
        assert fetch_all(client, "t", whole) == [b"one"]
        assert produce(client, "t", batch_of(b"again"), broken).error_code is ErrorCode.NONE


def test_a_node_that_loses_its_metadata_directory_ends_with_a_sentence(tmp_path: Path) -> None:
    """A file that may not grow is what a full disk looks like, and needs no disk that is full."""
    node = OttlaNode(tmp_path)
    node.start()
    assert node.process is not None
    with PlainClient(node.bootstrap) as client:
        create_topic(client, "t")
        assert produce(client, "t", batch_of(b"kept")).error_code is ErrorCode.NONE
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
        answer = produce(client, "t", batch_of(b"x" * FILE_BYTES_MAX))
        assert answer.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.process.wait(60) == 1
    assert node.process.stdout is not None
    node.process.stdout.close()
    said = node.read_log().splitlines()
    assert f"log directory {node.data_directory} is offline" in said[-1]
    assert "Traceback" not in node.read_log()
    with OttlaNode(tmp_path) as again, PlainClient(again.bootstrap) as client:
        assert fetch_all(client, "t") == [b"kept"]
