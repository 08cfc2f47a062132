"""Directories that get no new replicas (`cordoned.log.dirs`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.deciding import new_topic
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle.startup import Node
from ottla.wire.config_kinds import AlterOperation, ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with in_process_node(tmp_path, {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}) as node:
        yield node


def cordon(node: Node, paths: str) -> None:
    """Say which directories are to get no new logs, and let the node notice."""
    config = AlterableConfig(name="cordoned.log.dirs", config_operation=AlterOperation.SET, value=paths)
    resource = AlterConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=str(node.broker.node_id), configs=(config,)
    )
    ask = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = InProcessClient(node).ask(ask).responses
    assert answer.error_code is ErrorCode.NONE
    node.housekeeping._look_at_directories()


def create(node: Node, name: str, partitions: int) -> ErrorCode:
    ask = CreateTopicsRequest(topics=(new_topic(name, partitions, 1),))
    error_code: ErrorCode = InProcessClient(node).ask(ask).topics[0].error_code
    return error_code


def logs(node: Node) -> dict[str, int]:
    return {Path(one.path).name: len(one.logs) for one in node.broker.directories.directories}


def test_new_logs_stay_away_from_a_cordoned_directory(node: Node, tmp_path: Path) -> None:
    cordon(node, str(tmp_path / "two"))
    assert create(node, "t", 4) is ErrorCode.NONE
    assert logs(node) == {"one": 4, "two": 0}
    cordon(node, "")
    assert create(node, "more", 4) is ErrorCode.NONE
    assert logs(node) == {"one": 4, "two": 4}


def test_no_log_is_moved_to_a_cordoned_directory(node: Node, tmp_path: Path) -> None:
    cordon(node, str(tmp_path / "two"))
    create(node, "t", 1)
    move = AlterReplicaLogDir(
        path=str(tmp_path / "two"), topics=(AlterReplicaLogDirTopic(name="t", partitions=(0,)),)
    )
    answer = InProcessClient(node).ask(AlterReplicaLogDirsRequest(dirs=(move,)))
    assert answer.results[0].partitions[0].error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_broker_whose_directories_are_all_cordoned_gets_no_replicas(node: Node) -> None:
    assert create(node, "before", 1) is ErrorCode.NONE
    cordon(node, "*")
    assert create(node, "t", 1) is ErrorCode.INVALID_REPLICATION_FACTOR
    described = InProcessClient(node).ask(DescribeLogDirsRequest(topics=None)).results
    assert [one.is_cordoned for one in described] == [True, True]
    cordon(node, "")
    assert create(node, "t", 1) is ErrorCode.NONE
