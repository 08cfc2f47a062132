"""Looking up offsets and deleting records, as Apache Kafka answers it."""

from typing import Any

import pytest
from tests.differential.busy_cluster import find_group_coordinator
from tests.differential.side_by_side import Both, fetched, fill, versions_of
from tests.support.data_plane import fetch_request

from ottla.wire.apis import ApiKey
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def offsets(answer: Any) -> Any:
    return [
        (part.partition_index, part.error_code, part.offset, part.leader_epoch, part.timestamp >= 0)
        for topic in answer.topics
        for part in topic.partitions
    ]


def list_offsets(
    topic: str, timestamp: int, partition: int = 0, copies: int = 1, epoch: int = -1, **settings: Any
) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(
        **{"replica_id": -1, **settings}, topics=(ListOffsetsTopic(name=topic, partitions=(asked,) * copies),)
    )


@pytest.mark.parametrize("version", versions_of(ApiKey.LIST_OFFSETS))
def test_offsets_of_times_and_places(both: Both, version: int) -> None:
    topic = f"offsets-{version}"
    fill(both, topic)
    both.create(f"{topic}-empty")
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 2**62):
        for name in (topic, f"{topic}-empty"):
            both.ask(list_offsets(name, timestamp), version, offsets)
    both.ask(list_offsets("no-such-topic", -1), version, offsets)
    both.ask(list_offsets(topic, -1, partition=9), version, offsets)
    both.ask(list_offsets(topic, -1, copies=2), version, offsets)
    both.ask(list_offsets(topic, -1, replica_id=-2), version, offsets)
    if version >= 2:
        both.ask(list_offsets(topic, -1, isolation_level=1), version, offsets)
    if version >= 4:
        for epoch in (0, 5):
            both.ask(list_offsets(topic, -1, epoch=epoch), version, offsets)


def test_ends_of_epochs(both: Both) -> None:
    fill(both, "ends")
    for version in versions_of(ApiKey.OFFSET_FOR_LEADER_EPOCH):
        for name, number, current, wanted in (
            ("ends", 0, -1, 0), ("ends", 0, -1, 1), ("ends", 0, -1, -1), ("ends", 0, 0, 0), ("ends", 0, 3, 0),
            ("ends", 9, -1, 0), ("no-such-topic", 0, -1, 0),
        ):  # fmt: skip
            asked = OffsetForLeaderPartition(
                partition=number, current_leader_epoch=current, leader_epoch=wanted
            )
            ask = OffsetForLeaderEpochRequest(
                replica_id=-1 if version >= 3 else -2,
                topics=(OffsetForLeaderTopic(topic=name, partitions=(asked,)),),
            )
            both.ask(ask, version, lambda answer: answer.topics)


def test_deleting_records(both: Both) -> None:
    fill(both, "deleting")
    both.create("deleting-compacted", configs={"cleanup.policy": "compact"})
    for side in both.sides:
        find_group_coordinator(side.client, "deleting")
    for topic, number, offset in (
        ("deleting", 0, 2),
        ("deleting", 0, 1),
        ("deleting", 0, -2),
        ("deleting", 0, 1000),
        ("deleting", 9, 1),
        ("no-such-topic", 0, 1),
        ("deleting-compacted", 0, 0),
        ("deleting", 0, -1),
        ("__consumer_offsets", 0, 1),
    ):
        asked = DeleteRecordsPartition(partition_index=number, offset=offset)
        ask = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),), timeout_ms=5000
        )
        both.ask(ask, 2, lambda answer: answer.topics)
    both.ask(fetch_request("deleting", 0), 12, fetched)
    both.ask(fetch_request("deleting", 0, last_fetched_epoch=0), 12, fetched)
    for timestamp in (-1, -2, -3, 0):
        both.ask(list_offsets("deleting", timestamp), 11, offsets)
