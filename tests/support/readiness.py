"""Waiting for a broker: until it leads a topic, and until its coordinators have loaded.

Apache Kafka answers that a topic exists before its broker leads it, and that a coordinator is there before
that has loaded. Both take a moment, and longer on a busy machine.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.support.data_plane import Asks

from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"

_TIMEOUT_S = 180


def ask_once_ready(
    client: Asks,
    request: Any,
    codes: Callable[[Any], Iterable[ErrorCode]],
    version: int | None = None,
) -> Any:
    """Ask until no error is left that goes away by itself: a broker that just started has a lot to load."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        answer = client.ask(request, version)
        errors = {code for code in codes(answer) if code is not ErrorCode.NONE}
        if not errors:
            return answer
        assert all(code.retriable for code in errors), (errors, request)
        assert time.monotonic() < deadline, f"{errors} to the end: {request}"
        time.sleep(0.05)


def wait_until_led(client: Asks, topic: str, partitions: int = 1) -> None:
    """Wait until a broker leads a topic that was created."""
    parts = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions))
    ask_once_ready(
        client,
        ListOffsetsRequest(
            replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=parts),), isolation_level=0
        ),
        lambda answer: (part.error_code for item in answer.topics for part in item.partitions),
        7,
    )


def start_coordinators(client: Asks) -> None:
    """Have the topics of both coordinators made, and wait until every part of theirs has loaded."""
    for key_type in range(2):
        ask_once_ready(
            client,
            FindCoordinatorRequest(key="any", key_type=key_type),
            lambda answer: [answer.error_code],
            3,
        )
    topics = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
    described = client.ask(MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in topics)))
    counts = {topic.name: len(topic.partitions) for topic in described.topics}
    wait_for_coordinators(client, counts[GROUP_METADATA_TOPIC], counts[TRANSACTION_STATE_TOPIC])


def wait_for_coordinators(client: Asks, group_partitions: int, transaction_partitions: int) -> None:
    """Ask about a group and a transaction of each shard: lists leave out, silently, what is not loaded."""
    for group in _keys_of_all_shards(group_partitions):
        ask_once_ready(
            client,
            OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),)),
            lambda answer: [one.error_code for one in answer.groups],
            8,
        )
    ask_once_ready(
        client,
        DescribeTransactionsRequest(transactional_ids=tuple(_keys_of_all_shards(transaction_partitions))),
        lambda answer: [
            one.error_code
            for one in answer.transaction_states
            if one.error_code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        ],
    )


def _keys_of_all_shards(partitions: int) -> Iterator[str]:
    left = set(range(partitions))
    for number in itertools.count():
        if not left:
            return
        key = f"nobody-{number}"
        if partition_of_key(key, partitions) in left:
            left.remove(partition_of_key(key, partitions))
            yield key
