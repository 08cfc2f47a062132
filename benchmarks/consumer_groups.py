"""A consumer group (KIP-848) of 1,000 members against Apache Kafka 4.3.1.

Measured are heartbeats that bring no news, and how long the group takes to settle after 100 members have
left together: from the first goodbye until every member is in the newest epoch and every partition has an
owner. Members send their next heartbeat as soon as the last one was answered, over 50 connections, so it is
the coordinator that takes the time. An answer to a heartbeat that changes something comes when that is on
disk in Ottla, and when it is in memory in Kafka.
"""

import argparse
import selectors
import socket
import time
from collections.abc import Callable, Iterable

from benchmarks.node_brokers import Broker, both_brokers
from benchmarks.node_compare import Row, compare
from benchmarks.node_load import connect, exchange
from tests.support.plain_client import PlainClient

from ottla.model.uuid import Uuid
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC = "thousand"
GROUP = "thousand"
MEMBERS = 1_000
LEAVING = 100
PARTITIONS = 1_000
CONNECTIONS = 50
_API = api_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)
_VERSION = 1
_GROUP_RESOURCE = 32
_NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip


class Member:
    """A member, as its client sees it: it gives up what it must at once."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: tuple[TopicPartitions, ...] = ()
        self._told: tuple[TopicPartitions, ...] = ()

    def join(self) -> bytes:
        self.epoch, self.owned, self._told = 0, (), ()
        return self._frame(
            0, rebalance_timeout_ms=600_000, subscribed_topic_names=(TOPIC,), topic_partitions=()
        )

    def leave(self) -> bytes:
        return self._frame(-1)

    def beat(self) -> bytes:
        if self.epoch == 0:
            return self.join()
        if self.owned == self._told:
            return self._frame(self.epoch)
        self._told = self.owned
        return self._frame(self.epoch, topic_partitions=self.owned)

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID:
            # It was silent for a session while the other broker was measured.
            self.epoch, self.owned = 0, ()
            return
        assert answer.error_code is ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions

    def _frame(self, epoch: int, **fields: object) -> bytes:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            **fields,  # type: ignore[arg-type]
        )
        return encode_request(request, _API, _VERSION, 1, "bench")


class Crowd:
    """All members of the group on one broker."""

    def __init__(self, broker: Broker) -> None:
        broker.create_topic(TOPIC, PARTITIONS)
        _prepare(broker)
        self._connections = [connect(broker.port) for _ in range(CONNECTIONS)]
        self.members = [Member(f"member-{number:04}") for number in range(MEMBERS)]
        self.join(self.members)

    def join(self, members: list[Member]) -> None:
        """Let members join, and the group settle."""
        self._ask(members, Member.join)
        self.settle(self.members)

    def leave(self, members: list[Member]) -> None:
        """Let members leave. Nobody else says a word meanwhile."""
        self._ask(members, Member.leave)

    def settle(self, members: list[Member]) -> None:
        """Send heartbeats until all is at rest."""
        self._ask(members, Member.beat)
        while not self._is_settled(members):
            self._ask(members, Member.beat)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _is_settled(self, members: list[Member]) -> bool:
        owned: list[tuple[Uuid, int]] = [
            (topic.topic_id, number)
            for member in members
            for topic in member.owned
            for number in topic.partitions
        ]
        return len({member.epoch for member in members}) == 1 and len(set(owned)) == PARTITIONS == len(owned)

    def _ask(self, members: Iterable[Member], make: Callable[[Member], bytes]) -> None:
        """Send one request of each member, on each connection one after the other."""
        queues: dict[socket.socket, list[Member]] = {connection: [] for connection in self._connections}
        for number, member in enumerate(members):
            queues[self._connections[number % CONNECTIONS]].append(member)
        selector = selectors.DefaultSelector()
        pending: dict[socket.socket, bytes] = {}
        for connection, queue in queues.items():
            if queue:
                selector.register(connection, selectors.EVENT_READ)
                pending[connection] = b""
                connection.sendall(make(queue[-1]))
        while pending:
            for key, _ in selector.select():
                connection = key.fileobj  # type: ignore[assignment]
                pending[connection] += connection.recv(1 << 16)
                data = pending[connection]
                if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
                    continue
                pending[connection] = b""
                member = queues[connection].pop()
                _, answer = decode_response(_API, _VERSION, data[4:])
                if make is not Member.leave:
                    member.take(answer)
                if queues[connection]:
                    connection.sendall(make(queues[connection][-1]))
                else:
                    selector.unregister(connection)
                    del pending[connection]
        selector.close()


def rows(brokers: tuple[Broker, Broker], scale: float = 1.0) -> list[Row]:
    """Measure heartbeats without news, and how long the group takes to settle."""
    crowds = {broker.name: Crowd(broker) for broker in brokers}

    def heartbeats(broker: Broker) -> float:
        crowd, requests = crowds[broker.name], int(20_000 * scale)
        crowd.settle(crowd.members)
        peers = [connect(broker.port) for _ in range(CONNECTIONS)]
        frames = [member.beat() for member in crowd.members[:CONNECTIONS]]
        before = broker.cpu_seconds()
        exchange(peers, frames, requests)
        for peer in peers:
            peer.close()
        return (broker.cpu_seconds() - before) * 1e6 / requests

    def settling(cost: Callable[[Broker], float]) -> Callable[[Broker], float]:
        def measure(broker: Broker) -> float:
            crowd = crowds[broker.name]
            crowd.settle(crowd.members)
            before = cost(broker)
            crowd.leave(crowd.members[:LEAVING])
            crowd.settle(crowd.members[LEAVING:])
            taken = cost(broker) - before
            crowd.join(crowd.members[:LEAVING])
            return taken * 1000

        return measure

    try:
        return [
            compare("heartbeats in a group of 1,000 members", "us CPU", brokers, heartbeats, 2.0),
            compare(
                "1,000 members settle after 100 have left",
                "ms",
                brokers,
                settling(lambda _broker: time.perf_counter()),
                1.0,
            ),
            compare(
                "1,000 members settle after 100 have left", "ms CPU", brokers, settling(Broker.cpu_seconds)
            ),
        ]
    finally:
        for crowd in crowds.values():
            crowd.close()


def _prepare(broker: Broker) -> None:
    """Have the coordinator there, and targets computed whenever they are due."""
    config = AlterableConfig(name="consumer.assignment.interval.ms", config_operation=0, value="0")
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=GROUP, configs=(config,))
    with PlainClient(broker.bootstrap) as client:
        client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        while client.ask(FindCoordinatorRequest(key=GROUP), 3).error_code in _NOT_YET:
            time.sleep(0.05)
        leave = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="nobody", member_epoch=-1)
        while client.ask(leave).error_code in _NOT_YET:
            time.sleep(0.05)


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    with both_brokers() as brokers:
        rows(brokers, arguments.scale)


if __name__ == "__main__":
    main()
