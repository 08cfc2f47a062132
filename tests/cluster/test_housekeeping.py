"""What a node does by itself: retention, compaction, moving logs, checkpoints. Time is not waited for."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch, fetch_all, produce
from tests.support.in_process import InProcessClient, in_process_node, loop_of
from tests.unit.metadata.images import find_partition

from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import ZERO_UUID
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory_checkpoints import CheckpointKind
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.world.disk import DiskError, Reason


def run_until(node: Node, is_done: Callable[[], bool]) -> None:
    """Let the loop run until something has happened."""

    async def wait() -> None:
        while not is_done():
            await asyncio.sleep(0.001)

    loop_of(node).run_until_complete(asyncio.wait_for(wait(), 60))


def test_old_segments_go_and_their_files_follow(tmp_path: Path) -> None:
    settings = {"internal.segment.bytes": "1000", "retention.bytes": "2000", "file.delete.delay.ms": "0"}
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "t", configs=settings)
        for number in range(20):
            produce(client, "t", batch_of(b"%d" % number * 100))
        directory = tmp_path / "data" / "t-0"
        files = len(list(directory.glob("*.log")))

        node.housekeeping._delete_old()
        run_until(node, lambda: not list(directory.glob("*.deleted")))

        data = fetch(client, "t", 0)
        assert data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(list(directory.glob("*.log"))) < files
        partition = node.broker.partitions.find("t", 0)
        assert partition is not None
        assert 1000 < partition.log.size_bytes <= 3000
        assert fetch(client, "t", partition.log.log_start_offset).error_code is ErrorCode.NONE


def test_a_compacted_topic_keeps_the_last_value_of_each_key(tmp_path: Path) -> None:
    settings = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "1000",
        "min.cleanable.dirty.ratio": "0.01",
    }
    with in_process_node(tmp_path, {"log.cleaner.dedupe.buffer.size": "2097152"}) as node:
        client = InProcessClient(node)
        create_topic(client, "t", configs=settings)
        for number in range(60):
            produce(client, "t", batch_of(b"%d" % number, key=b"key %d" % (number % 3)))

        cleaner = node.housekeeping.cleaner
        cleaner._look()
        run_until(node, lambda: cleaner.cleaned_rounds > 0 and not cleaner._running)
        cleaner.stop()

        values = fetch_all(client, "t")
        assert values[-3:] == [b"57", b"58", b"59"]
        assert len(values) < 30
        produce(client, "t", batch_of(b"60", key=b"key 0"))
        assert fetch_all(client, "t")[-1] == b"60"
    with in_process_node(tmp_path) as node:
        assert fetch_all(InProcessClient(node), "t") == [*values, b"60"]


def test_a_log_moves_while_it_is_written_and_read(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    settings = {"log.dirs": ",".join(map(str, directories))}
    with in_process_node(tmp_path, settings) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client, "t", configs={"internal.segment.bytes": "2000"})
        for number in range(50):
            produce(client, "t", batch_of(b"%d" % number * 50))
        source = next(path for path in directories if (path / "t-0").exists())
        target = next(path for path in directories if path is not source)
        move = AlterReplicaLogDir(
            path=str(target), topics=(AlterReplicaLogDirTopic(name="t", partitions=(0,)),)
        )
        answer = client.ask(AlterReplicaLogDirsRequest(dirs=(move,)))
        assert answer.results[0].partitions[0].error_code is ErrorCode.NONE
        for number in range(50, 60):
            produce(client, "t", batch_of(b"%d" % number * 50))

        run_until(node, lambda: len(node.broker.log_moves) == 0)

        assert (target / "t-0").exists()
        assert not (source / "t-0").exists()
        expected = [b"%d" % number * 50 for number in range(60)]
        assert fetch_all(client, "t") == expected
        assert produce(client, "t", batch_of(b"after")).base_offset == 60
        run_until(
            node,
            lambda: (
                _directory_in_metadata(node)
                == node.broker.directories.directory_of(_log(node)).meta.directory_id
            ),
        )
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        assert client.ask(asked).topics[0].topic_id == topic_id
    with in_process_node(tmp_path, settings) as node:
        assert fetch_all(InProcessClient(node), "t") == [*expected, b"after"]


def _log(node: Node) -> Log:
    partition = node.broker.partitions.find("t", 0)
    assert partition is not None
    return partition.log


def _directory_in_metadata(node: Node) -> object:
    record = find_partition(node.broker.image.topics, "t", 0)
    assert record is not None
    return record.directories[0]


def test_what_was_recovered_need_not_be_recovered_again(tmp_path: Path) -> None:
    with in_process_node(tmp_path / "killed") as node:
        client = InProcessClient(node)
        create_topic(client, "t", 2)
        produce(client, "t", batch_of(b"1", b"2"))
        # What a kill at this moment would leave behind: no clean stop, no recovery points.
        shutil.copytree(tmp_path / "killed" / "data", tmp_path / "left" / "data")

    with in_process_node(tmp_path / "left") as node:
        checkpoint = tmp_path / "left" / "data" / "recovery-point-offset-checkpoint"
        node.housekeeping._save_recovered()
        run_until(node, checkpoint.exists)

        assert sorted(checkpoint.read_text().splitlines()[2:]) == ["t 0 2", "t 1 0"]


def test_checkpoints_say_what_holds(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "t")
        produce(client, "t", batch_of(b"a", b"b"))
        checkpoint = tmp_path / "data" / "replication-offset-checkpoint"

        node.housekeeping._checkpoint_all(CheckpointKind.HIGH_WATERMARK)
        run_until(node, checkpoint.exists)

        assert checkpoint.read_text() == "0\n1\nt 0 2\n"


def test_the_directory_of_a_deleted_topic_is_removed(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"log.segment.delete.delay.ms": "0"}) as node:
        client = InProcessClient(node)
        create_topic(client, "t", partitions=3)
        state = DeleteTopicState(name="t", topic_id=ZERO_UUID)
        client.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=1000))
        run_until(node, lambda: not list((tmp_path / "data").glob("t-*")))


def test_the_metadata_log_shows_signs_of_life(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"metadata.max.idle.interval.ms": "1"}) as node:
        offset = node.broker.image.offset
        node.housekeeping.start()
        run_until(node, lambda: node.broker.image.offset > offset + 2)


def test_what_lies_in_a_failed_directory_has_no_leader(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    settings = {"log.dirs": ",".join(map(str, directories))}
    with in_process_node(tmp_path, settings) as node:
        client = InProcessClient(node)
        create_topic(client, "t", partitions=2)
        run_until(node, lambda: len(set(_directories(node))) == 2)
        failed = node.broker.directories.directories[1]
        failed.volume.fail(DiskError(failed.path, "write", Reason.IO_ERROR))

        lost = [number for number in range(2) if produce(client, "t", batch_of(b"v"), number).error_code]
        assert len(lost) == 1
        node.housekeeping._look_at_directories()
        run_until(node, lambda: _leaders(node)[lost[0]] == -1)

        assert sorted(_leaders(node)) == [-1, 0]
        kept = 1 - lost[0]
        assert produce(client, "t", batch_of(b"v"), kept).error_code is ErrorCode.NONE


def _leaders(node: Node) -> list[int]:
    topic = node.broker.image.topics.find("t")
    assert topic is not None
    return [topic.partitions[number].leader for number in range(2)]


def _directories(node: Node) -> list[object]:
    topic = node.broker.image.topics.find("t")
    assert topic is not None
    return [topic.partitions[number].directories[0] for number in range(2)]


def open_files_below(root: Path) -> list[str]:
    """Return the files below `root` that this process has open, gone ones with `(deleted)` behind them."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(descriptor.readlink()))
        except FileNotFoundError:
            continue
    return [path for path in found if path.startswith(str(root))]


def deleted_files_open_below(root: Path) -> list[str]:
    """Return those of them that keep their space although they have no name, or are about to lose it."""
    return [path for path in open_files_below(root) if path.endswith("(deleted)") or "-delete/" in path]


def test_a_deleted_topic_gives_back_its_files_and_their_space(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        for name in ("first", "second"):
            create_topic(client, name, configs={"file.delete.delay.ms": "0"})
            # Enough for blocks to be reserved behind the end.
            for _ in range(3):
                produce(client, name, batch_of(bytes(900_000)))
            fetch(client, name, 0)
        assert sum("00.log" in path for path in open_files_below(tmp_path / "data" / "first-0")) == 1

        topics = tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in ("first", "second"))
        client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=10_000))
        run_until(node, lambda: node.broker.deletions.waiting == 0)

        assert not deleted_files_open_below(tmp_path)


def test_a_log_that_moved_gives_back_the_space_of_the_old_one(tmp_path: Path) -> None:
    second = tmp_path / "second"
    settings = {"log.dirs": f"{tmp_path / 'data'},{second}", "log.segment.delete.delay.ms": "0"}
    with in_process_node(tmp_path, settings) as node:
        client = InProcessClient(node)
        create_topic(client, "t")
        produce(client, "t", batch_of(bytes(1000)))
        partition = node.broker.partitions.find("t", 0)
        assert partition is not None
        old = node.broker.directories.directory_of(partition.log)
        (target,) = (one for one in node.broker.directories.directories if one is not old)
        node.broker.log_moves.begin(partition, target)
        run_until(node, lambda: len(node.broker.log_moves) == 0 and node.broker.deletions.waiting == 0)
        assert not deleted_files_open_below(tmp_path)


def test_timers_that_fall_due_while_the_node_stops_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "t")
        produce(client, "t", batch_of(b"1"))
        topic = DeleteTopicState(name="t", topic_id=ZERO_UUID)
        client.ask(DeleteTopicsRequest(topics=(topic,), timeout_ms=10_000))
        assert node.broker.deletions.waiting == 1
        end, time = node.broker.workers.close, loop_of(node).time

        def close_and_let_all_timers_fall_due() -> None:
            end()
            monkeypatch.setattr(loop_of(node), "time", lambda: time() + 3600)

        monkeypatch.setattr(node.broker.workers, "close", close_and_let_all_timers_fall_due)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    with in_process_node(tmp_path, {"log.segment.delete.delay.ms": "0"}) as node:
        run_until(node, lambda: node.broker.deletions.waiting == 0)
        assert not list((tmp_path / "data").glob("t-*"))
