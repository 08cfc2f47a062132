"""A broker of Ottla and one of Apache Kafka in one cluster, as replicas of the same partitions.

Broker 1 is Ottla, broker 2 is Apache Kafka. Node 3, of Ottla, is their controller, which they reach through a
proxy that keeps what they say. Other brokers are played by the test (`scripted_broker`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.mixed_cluster import MixedCluster, wait_until
from tests.support.plain_client import PlainClient
from tests.support.recording_proxy import RecordingProxy
from tests.support.scripted_broker import ScriptedBroker

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
)
from ottla.wire.messages.metadata import MetadataRequest

OTTLA, APACHE, CONTROLLER = 1, 2, 3
TWINS = (OTTLA, APACHE)
BACKOFF_MS = 50
"""As `replica.fetch.backoff.ms`."""


class ReplicaTwins:
    """Both brokers, and the controller."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        """Settings that Apache Kafka does not know are ignored by it."""
        shared = {"replica.fetch.backoff.ms": str(BACKOFF_MS), **settings}
        self.cluster = MixedCluster(root, "oao", controllers=(CONTROLLER,), settings=shared)
        self.controller = self.cluster.controller_address(CONTROLLER)
        self.proxy = RecordingProxy(self.controller)
        self.clients: dict[int, PlainClient] = {}
        for broker_id in TWINS:
            self.cluster[broker_id].set("controller.quorum.voters", f"{CONTROLLER}@{self.proxy.address}")
        advertised = f"PLAINTEXT://{self.cluster.address(CONTROLLER)},CONTROLLER://{self.proxy.address}"
        self.cluster[CONTROLLER].set("advertised.listeners", advertised)

    def __enter__(self) -> Self:
        self.proxy.__enter__()
        try:
            self.cluster.__enter__()
        except BaseException:
            self.proxy.__exit__(None, None, None)
            raise
        for one in (*TWINS, CONTROLLER):
            self.clients[one] = self._connect(one)
        return self

    def _connect(self, number: int) -> PlainClient:
        """Connect to a broker. One that is registered may not listen for clients yet."""
        made: list[PlainClient] = []

        def is_connected() -> bool:
            with suppress(ConnectionRefusedError):
                made.append(PlainClient(self.cluster.address(number)))
            return bool(made)

        wait_until(is_connected, f"broker {number} accepts connections")
        return made[0]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients.values():
            client.close()
        self.cluster.__exit__()
        self.proxy.__exit__(None, None, None)

    def scripted(self, *broker_ids: int) -> ScriptedBroker:
        """Return brokers that the test plays."""
        return ScriptedBroker(self.controller, *broker_ids)

    def broker_epoch(self, broker_id: int) -> int:
        """Return the epoch that the controller gave a broker."""
        return next(
            int(one.response.broker_epoch)
            for one in reversed(self.proxy.of(BrokerRegistrationRequest))
            if one.request.broker_id == broker_id and one.response.error_code is ErrorCode.NONE
        )

    def create(self, name: str, *replicas: Sequence[int], **configs: str) -> Uuid:
        """Create a topic whose partitions have these replicas. All that serve are in sync at first."""
        assignments = tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(ids))
            for number, ids in enumerate(replicas)
        )
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ),
        )
        answer = self.clients[CONTROLLER].ask(CreateTopicsRequest(topics=(topic,), timeout_ms=30_000))
        (result,) = answer.topics
        assert result.error_code is ErrorCode.NONE, result
        topic_id: Uuid = result.topic_id
        return topic_id

    def partition(self, topic: str, number: int = 0, broker_id: int = CONTROLLER) -> Any:
        """Return what a broker knows of a partition."""
        request = DescribeTopicPartitionsRequest(topics=(DescribeTopicPartitionsRequestTopic(name=topic),))
        (found,) = self.clients[broker_id].ask(request).topics
        return next((one for one in found.partitions if one.partition_index == number), None)

    def wait_for_epoch(self, topic: str, leader_epoch: int, brokers: Sequence[int]) -> None:
        """Wait until brokers know that a partition has this leader epoch."""

        def is_known(broker_id: int) -> bool:
            found = self.partition(topic, 0, broker_id)
            return found is not None and found.leader_epoch == leader_epoch

        for broker_id in brokers:
            wait_until(partial(is_known, broker_id), f"epoch {leader_epoch} at {broker_id}")

    def remove_replicas(self, topic: str, replicas: Sequence[int]) -> None:
        """Leave a partition only these replicas. Its leader begins another epoch by that."""
        self.cluster.reassign(topic, {0: replicas})

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=topic, topic_id=ZERO_UUID),), timeout_ms=30_000
        )
        self.clients[CONTROLLER].ask(request)

    def wait_for_in_sync(self, topic: str, in_sync: set[int], broker_id: int) -> None:
        """Wait until a broker knows the in-sync replicas of a partition."""
        wait_until(
            lambda: set(self.partition(topic, 0, broker_id).isr_nodes) == in_sync,
            f"{broker_id} knows that {in_sync} are in sync",
        )

    def wait_for_broker(self, broker_id: int, at: int) -> None:
        """Wait until a broker knows that another one serves."""

        def is_known() -> bool:
            answer = self.clients[at].ask(MetadataRequest(topics=()))
            return broker_id in {one.node_id for one in answer.brokers}

        wait_until(is_known, f"{at} knows that {broker_id} serves")
