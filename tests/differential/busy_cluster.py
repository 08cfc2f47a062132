"""A cluster with something of everything that a directory can hold, made by requests alone.

So it can be made on Apache Kafka and on Ottla, and handed from one to the other.
"""

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Producer
from tests.support.census import LATEST, list_offset
from tests.support.data_plane import Asks, create_topic, produce, produce_request
from tests.support.plain_client import PlainClient
from tests.support.readiness import ask_once_ready

from ottla.model.uuid import ZERO_UUID
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_client_quotas, incremental_alter_configs
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NOW_MS: Final = time.time_ns() // 1_000_000
"""A broker forgets producers by the time of their last batch, so that has to be recent."""

TOPICS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "plain": (3, {}),
    "segments": (2, {"internal.segment.bytes": "2000", "index.interval.bytes": "200"}),
    "compacted": (1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"}),
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "recompressed": (1, {"compression.type": "zstd", "max.message.bytes": "2000000"}),
    "shortened": (1, {"internal.segment.bytes": "1000"}),
    "grown": (1, {"retention.ms": "-1"}),
    "transactions": (2, {}),
    "gone": (1, {}),
}
SHORTENED_TO: Final = 17


def make_busy(bootstrap: str) -> None:
    """Make topics and fill them; set configs, quotas, users and offsets of groups; run transactions."""
    with PlainClient(bootstrap) as client:
        _make_busy(client)
    for name, ending in (("committed", Producer.commit_transaction), ("aborted", Producer.abort_transaction)):
        ending(transaction(bootstrap, name), 60)
    transaction(bootstrap, "left-open")


def transaction(bootstrap: str, name: str) -> Producer:
    """Write two records in a transaction, and leave it open."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce("transactions", f"{name} {partition}", partition=partition)
    assert producer.flush(60) == 0
    return producer


def _make_busy(client: PlainClient) -> None:
    for topic, (partitions, configs) in TOPICS.items():
        create_topic(client, topic, partitions, {"retention.ms": "-1", **configs})
    _grow(client, "grown", 4)
    for topic in TOPICS:
        for partition in range(4 if topic == "grown" else TOPICS[topic][0]):
            fill(client, topic, partition)
    _shorten(client, "shortened", SHORTENED_TO)
    client.ask(
        DeleteTopicsRequest(topics=(DeleteTopicState(name="gone", topic_id=ZERO_UUID),), timeout_ms=30_000)
    )
    _set_configs(client)
    _set_quotas(client)
    _add_users(client)
    commit_offsets(client, "a-group", {("plain", 0): 7, ("plain", 2): 9, ("segments", 1): 3})
    commit_offsets(client, "b-group", {("plain", 1): 0})


def fill(client: PlainClient, topic: str, partition: int) -> None:
    """Append batches of every codec, by nobody and by an idempotent producer."""
    producer = new_producer(client)
    sequence = 0
    for number in range(20):
        records = [
            Record(
                delta,
                NOW_MS + number * 100 + delta,
                f"key-{(number + delta) % 7}".encode() if delta or topic == "compacted" else None,
                None if delta == 3 else f"{topic} {partition} {number} {delta}".encode() * delta,
                (("trace", b"%d" % number), ("null", None), ("trace", b"")) if delta % 2 else (),
            )
            for delta in range(1 + number % 5)
        ]
        codec = list(Codec)[number % 5]
        if number % 2:
            batch = build_batch(records, codec=codec)
        else:
            batch = build_batch(
                records,
                codec=codec,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=sequence,
            )
            sequence += len(records)
        produce_once_ready(client, topic, batch, partition)


def produce_once_ready(client: Asks, topic: str, batch: bytearray, partition: int = 0) -> None:
    """Append a batch. Apache Kafka says that a topic is there a moment before it can be written to."""
    ask_once_ready(
        client,
        produce_request(topic, batch, partition),
        lambda answer: [answer.responses[0].partition_responses[0].error_code],
        12,
    )


class Resender:
    """An idempotent producer that sends its last batch again, to whoever keeps the partition now."""

    def __init__(self, client: PlainClient, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        producer = new_producer(client)
        self._producer_id, self._producer_epoch = producer.producer_id, producer.producer_epoch
        self._sequence = 0
        self._last_offset = -1

    def send(self, client: PlainClient) -> None:
        """Append a batch at the end of the partition."""
        end = list_offset(client, self.topic, self.partition, LATEST)
        answer = produce(client, self.topic, self._batch(), self.partition)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, end), "the next offset is taken"
        self._last_offset = answer.base_offset

    def resend(self, client: PlainClient) -> None:
        """Send the last batch again. It is known, and gets its old offset."""
        end = list_offset(client, self.topic, self.partition, LATEST)
        answer = produce(client, self.topic, self._batch(), self.partition)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, self._last_offset)
        assert list_offset(client, self.topic, self.partition, LATEST) == end, "nothing was appended"

    def move_on(self) -> None:
        """Make what is sent next a new batch."""
        self._sequence += 2

    def _batch(self) -> bytearray:
        records = [Record(delta, NOW_MS, b"resent", b"%d" % self._sequence) for delta in range(2)]
        return build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence,
        )


def new_producer(client: PlainClient) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer: InitProducerIdResponse = ask_once_ready(client, request, lambda answer: [answer.error_code], 5)
    return answer


def commit_offsets(client: Asks, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets of a group without members, once its coordinator has come up."""
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=f"at {offset}"
                    ),
                ),
            )
            for (topic, partition), offset in offsets.items()
        ),
    )
    find_group_coordinator(client, group)
    ask_once_ready(
        client,
        request,
        lambda answer: [part.error_code for topic in answer.topics for part in topic.partitions],
        9,
    )


def find_group_coordinator(client: Asks, group: str) -> None:
    """Look for the coordinator of a group: for the first of all, that creates the topic of the groups."""
    ask_once_ready(
        client,
        FindCoordinatorRequest(key_type=0, coordinator_keys=(group,)),
        lambda answer: [one.error_code for one in answer.coordinators],
        6,
    )


def _grow(client: PlainClient, topic: str, count: int) -> None:
    asked = (CreatePartitionsTopic(name=topic, partition_count=count, assignments=None),)
    answer = client.ask(CreatePartitionsRequest(topics=asked, timeout_ms=30_000, validate_only=False))
    assert answer.results[0].error_code is ErrorCode.NONE


def _shorten(client: PlainClient, topic: str, offset: int) -> None:
    asked = DeleteRecordsTopic(
        name=topic, partitions=(DeleteRecordsPartition(partition_index=0, offset=offset),)
    )
    answer = client.ask(DeleteRecordsRequest(topics=(asked,), timeout_ms=30_000))
    assert answer.topics[0].partitions[0].low_watermark == offset


def _set_configs(client: PlainClient) -> None:
    changes = (
        (2, "plain", "flush.messages", "1000"),
        (4, "", "log.cleaner.backoff.ms", "14000"),
        (4, "0", "background.threads", "5"),
        (16, "client-metrics", "interval.ms", "60000"),
        (32, "a-group", "consumer.session.timeout.ms", "46000"),
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=(
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=0, value=value),
                ),
            )
            for kind, name, key, value in changes
        ),
        validate_only=False,
    )
    answer = client.ask(request)
    assert {one.error_code for one in answer.responses} == {ErrorCode.NONE}, answer


def _set_quotas(client: PlainClient) -> None:
    entities = (
        (("user", "alice"), ("client-id", None)),
        (("user", None),),
        (("client-id", "app"),),
        (("user", "böb"),),
    )
    request = alter_client_quotas.AlterClientQuotasRequest(
        entries=tuple(
            alter_client_quotas.QuotaAlteration(
                entity=tuple(
                    alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity
                ),
                ops=(
                    alter_client_quotas.QuotaOperation(key="producer_byte_rate", value=1e8, remove=False),
                    alter_client_quotas.QuotaOperation(key="request_percentage", value=99.5, remove=False),
                ),
            )
            for entity in entities
        ),
        validate_only=False,
    )
    assert {one.error_code for one in client.ask(request).entries} == {ErrorCode.NONE}


def _add_users(client: PlainClient) -> None:
    users = (("alice", 1, 4096, 32), ("alice", 2, 5000, 64), ("bob", 2, 4096, 64))
    for name, mechanism, iterations, size in users:
        upsertion = ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * size
        )
        answer = client.ask(AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))
        assert answer.results[0].error_code is ErrorCode.NONE
