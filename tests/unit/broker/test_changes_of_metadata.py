"""One part of a node that fails to act on new metadata does not keep the others from it."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import create_topic
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


@pytest.mark.parametrize("fails_inside", [False, True], ids=["a part", "what a part calls"])
def test_groups_are_served_though_another_part_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_inside: bool
) -> None:
    def fail(*_arguments: Any) -> None:
        raise TypeError("a bug")

    with in_process_node(tmp_path, {"offsets.topic.num.partitions": "1"}) as node:
        client = InProcessClient(node)
        create_topic(client, "orders")
        if fails_inside:
            monkeypatch.setattr(node.broker.replication.low_watermarks, "moved", fail)
        else:
            node.broker.events.of_metadata.insert(0, fail)
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("any",)), 4)
        topics = (OffsetFetchRequestTopics(name="orders", partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="any", topics=topics),))
        (found,) = client.ask(request, 9).groups
        assert found.error_code is ErrorCode.NONE
        assert node.broker.metadata.errors > 0
