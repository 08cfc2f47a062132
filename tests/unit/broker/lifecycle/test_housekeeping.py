"""Rounds over all logs go on while partitions come and go."""

import asyncio
from pathlib import Path

from tests.support.deciding import new_topic
from tests.support.in_process import InProcessClient, in_process_node, loop_of
from tests.unit.storage.logs import NOW_MS, batch

from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def test_a_topic_that_is_deleted_during_a_round_of_retention_takes_no_directory_offline(
    tmp_path: Path,
) -> None:
    configs = {"log.segment.delete.delay.ms": "0", "log.retention.ms": "1"}
    with in_process_node(tmp_path, {"log.dirs": str(tmp_path / "data"), **configs}) as node:
        client, broker = InProcessClient(node), node.broker
        for name in ("first", "second"):
            created = client.ask(CreateTopicsRequest(topics=(new_topic(name, 1, 1),))).topics[0]
            assert created.error_code is ErrorCode.NONE
            partition = broker.partitions.find(name, 0)
            assert partition is not None
            partition.append(batch(), NOW_MS)
        steps = node.housekeeping._delete_old_steps()
        next(steps)
        gone = DeleteTopicState(name="second", topic_id=ZERO_UUID)
        deleted = client.ask(DeleteTopicsRequest(topics=(gone,), timeout_ms=30_000))
        assert deleted.responses[0].error_code is ErrorCode.NONE
        while (tmp_path / "data" / "second-0").exists() or broker.deletions.waiting:
            loop_of(node).run_until_complete(asyncio.sleep(0))
        assert not list((tmp_path / "data").glob("second-0*"))
        for _ in steps:
            pass
        assert not broker.directories.offline_paths
