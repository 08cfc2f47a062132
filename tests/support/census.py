"""A census of a broker: everything that a client can see of what it keeps.

    with PlainClient(bootstrap) as client:
        before = take_census(client)

Two brokers that kept the same directory, one after the other, must give the same census. What every start
changes is left out: leader epochs, the broker's own address, times of fetches.

Internal topics go on by themselves (a coordinator may write when it loads), so they are compared up to where
the older census saw them end. See `differences`.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from tests.support.data_plane import fetch
from tests.support.plain_client import PlainClient
from tests.support.readiness import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ask_once_ready,
    wait_for_coordinators,
)

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

EARLIEST = -2
LATEST = -1
READ_COMMITTED = 1
TOPIC = 2
BROKER_LOGGER = 8
SET_BY_SOMEBODY = frozenset((1, 2, 3, 7, 8))
"""Sources of a config that was changed: of the topic, broker, cluster, client metrics or group."""

Partition = tuple[str, int]


class Log(NamedTuple):
    """One partition: where it starts and ends, who wrote it, and a digest of each record."""

    start_offset: int
    last_stable_offset: int
    end_offset: int
    producers: frozenset[tuple[int, int, int]]
    records: tuple[tuple[int, str], ...]


class Census(NamedTuple):
    """All that was found."""

    topics: dict[str, tuple[Uuid, int]]
    configs: dict[tuple[int, str], dict[str, str | None]]
    quotas: dict[frozenset[tuple[str, str | None]], dict[str, float]]
    scram: dict[str, frozenset[tuple[int, int]]]
    groups: dict[str, str]
    commits: dict[tuple[str, str, int], tuple[int, str | None]]
    transactions: dict[str, tuple[int, str]]
    logs: dict[Partition, Log]


def take_census(client: PlainClient) -> Census:
    """Ask for everything."""
    topics = _topics(client)
    nothing = (ZERO_UUID, 0)
    wait_for_coordinators(
        client, topics.get(GROUP_METADATA_TOPIC, nothing)[1], topics.get(TRANSACTION_STATE_TOPIC, nothing)[1]
    )
    answer = ask_once_ready(client, ListGroupsRequest(), lambda answer: [answer.error_code])
    groups = {group.group_id: group.group_type for group in answer.groups}
    listed = ask_once_ready(
        client,
        ListTransactionsRequest(state_filters=(), producer_id_filters=()),
        lambda answer: [answer.error_code],
    )
    return Census(
        topics,
        _configs(client),
        _quotas(client),
        _scram(client),
        groups,
        dict(_commits(client, groups)),
        {one.transactional_id: (one.producer_id, one.transaction_state) for one in listed.transaction_states},
        {
            (name, number): read_log(client, name, number)
            for name, (_, count) in topics.items()
            for number in range(count)
        },
    )


def is_internal(topic: str) -> bool:
    return topic.startswith("__")


def differences(older: Census, newer: Census) -> list[str]:
    """Return what is not as it was, one line for each thing."""
    found = []
    for name in Census._fields[:-1]:
        before, after = getattr(older, name), getattr(newer, name)
        found += [
            f"{name} {key}: {before.get(key)} became {after.get(key)}"
            for key in {**before, **after}
            if before.get(key) != after.get(key)
        ]
    for partition, log in older.logs.items():
        found += [f"{partition} {line}" for line in _log_differences(partition, log, newer.logs[partition])]
    return found


def _log_differences(partition: Partition, before: Log, after: Log) -> Iterator[str]:
    if is_internal(partition[0]):
        known = after.records[: len(before.records)]
        if known != before.records or before.start_offset != after.start_offset:
            yield "has other records"
        return
    for name in Log._fields:
        if getattr(before, name) != getattr(after, name):
            yield f"{name}: {str(getattr(before, name))[-300:]} became {str(getattr(after, name))[-300:]}"


def list_offset(client: PlainClient, topic: str, partition: int, timestamp: int, isolation: int = 0) -> int:
    """Return the offset that is found for a timestamp, or for a place."""
    asked = (ListOffsetsPartition(partition_index=partition, timestamp=timestamp),)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=asked),)
    )
    answer = ask_once_ready(client, request, lambda answer: [answer.topics[0].partitions[0].error_code])
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def read_log(client: PlainClient, topic: str, partition: int) -> Log:
    """Read a partition from one end to the other."""
    start = list_offset(client, topic, partition, EARLIEST)
    end = list_offset(client, topic, partition, LATEST)
    return Log(
        start,
        list_offset(client, topic, partition, LATEST, READ_COMMITTED),
        end,
        _producers(client, topic, partition),
        tuple(_digests(client, topic, partition, start, end)),
    )


def _digests(
    client: PlainClient, topic: str, partition: int, start: int, end: int
) -> Iterator[tuple[int, str]]:
    offset = start
    while offset < end:
        data = fetch(client, topic, offset, partition)
        assert data.error_code is ErrorCode.NONE, (topic, partition, data.error_code)
        before = offset
        for batch in iter_batches(memoryview(data.records or b"")):
            who = (batch.producer_id, batch.producer_epoch, batch.attributes, batch.leader_epoch)
            for record in iter_batch_records(batch):
                if record.offset >= start:
                    yield record.offset, blake2b(repr((record, who)).encode(), digest_size=12).hexdigest()
            offset = batch.last_offset + 1
        assert offset > before, (topic, partition, offset, "nothing came, though the log goes on")


def _producers(client: PlainClient, topic: str, partition: int) -> frozenset[tuple[int, int, int]]:
    asked = (DescribeProducersTopic(name=topic, partition_indexes=(partition,)),)
    answer = client.ask(DescribeProducersRequest(topics=asked)).topics[0].partitions[0]
    assert answer.error_code is ErrorCode.NONE
    return frozenset(
        (one.producer_id, one.producer_epoch, one.last_sequence) for one in answer.active_producers
    )


def _topics(client: PlainClient) -> dict[str, tuple[Uuid, int]]:
    # A broker that just started leads nothing before its controller has heard of it.
    answer = ask_once_ready(
        client,
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        lambda answer: (
            code for topic in answer.topics for code in (topic.error_code, *_leader_errors(topic.partitions))
        ),
    )
    return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics}


def _leader_errors(partitions: Iterable[Any]) -> list[ErrorCode]:
    return [ErrorCode.LEADER_NOT_AVAILABLE for part in partitions if part.leader_id < 0]


def _configs(client: PlainClient) -> dict[tuple[int, str], dict[str, str | None]]:
    resources = client.ask(ListConfigResourcesRequest()).config_resources
    asked = [
        (one.resource_type, one.resource_name) for one in resources if one.resource_type != BROKER_LOGGER
    ]
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in asked
        )
    )
    described = client.ask(request).results
    assert len(described) == len(asked)
    found = {
        (one.resource_type, one.resource_name): {
            config.name: config.value for config in one.configs if config.config_source in SET_BY_SOMEBODY
        }
        for one in described
    }
    return {resource: configs for resource, configs in found.items() if configs}


def _quotas(client: PlainClient) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    entries = client.ask(DescribeClientQuotasRequest(components=(), strict=False)).entries
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in entries
    }


def _scram(client: PlainClient) -> dict[str, frozenset[tuple[int, int]]]:
    results = client.ask(DescribeUserScramCredentialsRequest(users=None)).results
    return {
        result.user: frozenset((one.mechanism, one.iterations) for one in result.credential_infos)
        for result in results
    }


def _commits(client: PlainClient, groups: dict[str, str]) -> Iterator[tuple[Any, Any]]:
    asked = tuple(
        OffsetFetchRequestGroup(group_id=name, topics=None)
        for name, kind in groups.items()
        if kind in ("classic", "consumer", "streams")
    )
    answer = ask_once_ready(
        client, OffsetFetchRequest(groups=asked), lambda answer: [one.error_code for one in answer.groups], 8
    )
    for group in answer.groups:
        for topic in group.topics:
            for part in topic.partitions:
                yield (
                    (group.group_id, topic.name, part.partition_index),
                    (part.committed_offset, part.metadata),
                )
