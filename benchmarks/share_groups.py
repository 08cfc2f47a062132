"""Share groups against Apache Kafka 4.3.1: the cost of a record that is fetched and accepted, and heartbeats.

One member fetches, and acknowledges with each fetch what it got with the last one. An acknowledgement is
answered when it is on disk in Ottla, and when it is in memory in Kafka.
"""

import argparse
import time
from collections.abc import Callable

from benchmarks.node_brokers import Broker, both_brokers
from benchmarks.node_compare import Row, compare
from benchmarks.node_load import connect, exchange
from tests.support.data_plane import batch_of, produce
from tests.support.plain_client import PlainClient

from ottla.model.uuid import Uuid
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = "bench-queue"
CROWD = "bench-crowd"
MEMBER = "bench-member"
MEMBERS = 1_000
CONNECTIONS = 50
GOAL = 2.0
_ACCEPT = 1
_GROUP_RESOURCE = 32


class Queue:
    """A member of a share group on one broker, and the topic that it works off."""

    def __init__(self, broker: Broker, topic: str, batch_records: int) -> None:
        self.topic = topic
        self.client = PlainClient(broker.bootstrap)
        self._batch = batch_of(*(b"x" * 100 for _ in range(batch_records)))
        self._batch_records = batch_records
        broker.create_topic(topic, 1)
        self._topic_id = _topic_id(self.client, topic)
        self._group = f"{GROUP}-{topic}"
        _configure(self.client, self._group)
        epoch, answer = 0, None
        while answer is None or answer.assignment is None or not answer.assignment.topic_partitions:
            self.client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(self._group,)))
            answer = self.client.ask(
                ShareGroupHeartbeatRequest(
                    group_id=self._group,
                    member_id=MEMBER,
                    member_epoch=epoch,
                    subscribed_topic_names=(topic,),
                )
            )
            epoch = answer.member_epoch
            time.sleep(0.2)
        self._session_epoch = 0
        self._acquired: tuple[AcknowledgementBatch, ...] = ()

    def fill(self, records: int) -> None:
        """Write records to the topic."""
        for _ in range(records // self._batch_records):
            produce(self.client, self.topic, self._batch)

    def work_off(self, records: int, at_once: int) -> None:
        """Fetch and accept records until there are none."""
        left = records
        while left > 0 or self._acquired:
            left -= self._fetch(at_once if left > 0 else 0)

    def _fetch(self, records_max: int) -> int:
        one = FetchPartition(partition_index=0, acknowledgement_batches=self._acquired)
        answer = self.client.ask(
            ShareFetchRequest(
                group_id=self._group,
                member_id=MEMBER,
                share_session_epoch=self._session_epoch,
                max_wait_ms=500,
                min_bytes=1,
                max_records=records_max,
                batch_size=records_max,
                topics=(FetchTopic(topic_id=self._topic_id, partitions=(one,)),),
                forgotten_topics_data=(),
            )
        )
        assert answer.error_code is ErrorCode.NONE, answer
        self._session_epoch += 1
        parts = [
            part
            for topic in answer.responses
            for partition in topic.partitions
            for part in partition.acquired_records
        ]
        self._acquired = tuple(
            AcknowledgementBatch(
                first_offset=part.first_offset, last_offset=part.last_offset, acknowledge_types=(_ACCEPT,)
            )
            for part in parts
        )
        return sum(part.last_offset - part.first_offset + 1 for part in parts)


def rows(brokers: tuple[Broker, Broker], scale: float = 1.0) -> list[Row]:
    """Measure the CPU of a record, and of heartbeats in a group of a thousand."""

    def cost(batch_records: int, records: int) -> Callable[[Broker], float]:
        queues = {broker.name: Queue(broker, f"share-{batch_records}", batch_records) for broker in brokers}

        def measure(broker: Broker) -> float:
            queue = queues[broker.name]
            queue.fill(records)
            before = broker.cpu_seconds()
            queue.work_off(records, max(batch_records, 10))
            return (broker.cpu_seconds() - before) * 1e6 / records

        for broker in brokers:
            measure(broker)
        return measure

    crowds = {broker.name: _crowd(broker) for broker in brokers}

    def heartbeats(broker: Broker) -> float:
        peers, requests = [connect(broker.port) for _ in range(CONNECTIONS)], int(20_000 * scale)
        before = broker.cpu_seconds()
        exchange(peers, crowds[broker.name], requests)
        for peer in peers:
            peer.close()
        return (broker.cpu_seconds() - before) * 1e6 / requests

    return [
        compare(
            "share fetch and accept, batches of 100", "us CPU", brokers, cost(100, int(50_000 * scale)), GOAL
        ),
        compare("share fetch and accept, ten by ten", "us CPU", brokers, cost(1, int(3_000 * scale)), GOAL),
        compare("heartbeats in a share group of 1,000", "us CPU", brokers, heartbeats, GOAL),
    ]


def _crowd(broker: Broker) -> list[bytes]:
    """Make a group of a thousand members. Return the heartbeats of some of them."""
    topic = "share-crowd"
    broker.create_topic(topic, 10)
    with PlainClient(broker.bootstrap) as client:
        _configure(client, CROWD)
        while client.ask(FindCoordinatorRequest(key=CROWD), 3).error_code is not ErrorCode.NONE:
            time.sleep(0.05)
        epochs = dict.fromkeys((f"member-{number:04}" for number in range(MEMBERS)), 0)
        for _ in range(3):
            for member, epoch in epochs.items():
                ask = ShareGroupHeartbeatRequest(
                    group_id=CROWD, member_id=member, member_epoch=epoch, subscribed_topic_names=(topic,)
                )
                while (answer := client.ask(ask)).error_code is not ErrorCode.NONE:
                    time.sleep(0.05)
                epochs[member] = answer.member_epoch
    return [
        encode_request(
            ShareGroupHeartbeatRequest(group_id=CROWD, member_id=member, member_epoch=epoch),
            api_of(ApiKey.SHARE_GROUP_HEARTBEAT),
            1,
            1,
            "bench",
        )
        for member, epoch in list(epochs.items())[:CONNECTIONS]
    ]


def _topic_id(client: PlainClient, topic: str) -> Uuid:
    answer = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)))
    topic_id: Uuid = answer.topics[0].topic_id
    return topic_id


def _configure(client: PlainClient, group: str) -> None:
    configs = tuple(
        AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in (("share.auto.offset.reset", "earliest"), ("share.assignment.interval.ms", "0"))
    )
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=configs)
    answer = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.NONE, answer


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    settings = {"group.share.max.size": str(MEMBERS)}
    with both_brokers(settings) as brokers:
        rows(brokers, arguments.scale)


if __name__ == "__main__":
    main()
