"""Groups against Apache Kafka 4.3.1: the cost of heartbeats and commits, and a restart with many groups.

Heartbeats and commits come over 20 connections, each a member of a group of its own, one request at a time.
A commit is answered when it is on disk in Ottla, and when it is in memory in Kafka; then Ottla is told to do
as Kafka does. The groups are spread over the 50 partitions of `__consumer_offsets`, so nearly each commit is
synced by itself: the worst case, in which the syncs cost more than everything else.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.node_brokers import Broker, both_brokers
from benchmarks.node_compare import Row, compare
from benchmarks.node_load import connect, exchange
from tests.java.apache_kafka import ApacheKafka
from tests.support.group_requests import (
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    list_request,
    sync_request,
)
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.wire.apis import api_of
from ottla.wire.config_kinds import ResourceType
from ottla.wire.coordinator_records.framing import GROUP_RECORDS
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC = "groups"
PARTITIONS = 10
MEMBERS = 20
GROUPS = 5_000
GOAL = 2.0
"""How many times less CPU than Apache Kafka a request is meant to take."""
_NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip


def rows(brokers: tuple[Broker, Broker], scale: float = 1.0) -> list[Row]:
    """Measure the CPU of heartbeats and of commits."""
    frames: dict[tuple[str, str], list[bytes]] = {}
    for broker in brokers:
        broker.create_topic(TOPIC, PARTITIONS)
        # Kafka's and Ottla's brokers wait for further members first, so all groups are made at once.
        with ThreadPoolExecutor(MEMBERS) as pool:
            names = [f"group-{number}" for number in range(MEMBERS)]
            members = list(pool.map(lambda group, to=broker: _join(to, group), names))
        frames[broker.name, "heartbeat"] = [
            _frame(heartbeat_request(group, generation, member), 4) for group, member, generation in members
        ]
        for count in (1, PARTITIONS):
            frames[broker.name, f"commit {count}"] = [
                _frame(
                    commit_request(
                        group,
                        dict.fromkeys(range(count), 5),
                        topic=TOPIC,
                        generation=generation,
                        member_id=member,
                    ),
                    9,
                )
                for group, member, generation in members
            ]

    def cost(kind: str, requests: int) -> Callable[[Broker], float]:
        def measure(broker: Broker) -> float:
            peers = [connect(broker.port) for _ in range(MEMBERS)]
            before = broker.cpu_seconds()
            try:
                exchange(peers, frames[broker.name, kind], requests)
            finally:
                for peer in peers:
                    peer.close()
            return (broker.cpu_seconds() - before) * 1e6 / requests

        measure(brokers[0])
        measure(brokers[1])
        return measure

    requests = int(20_000 * scale)
    measured = [
        compare("heartbeats of 20 members", "us CPU", brokers, cost("heartbeat", requests), GOAL),
        compare("commits of 1 partition, on disk", "us CPU", brokers, cost("commit 1", requests), GOAL),
        compare(
            "commits of 10 partitions, on disk", "us CPU", brokers, cost("commit 10", requests // 2), GOAL
        ),
    ]
    _answer_from_memory(brokers[0])
    return [
        *measured,
        compare("commits of 1 partition, in memory", "us CPU", brokers, cost("commit 1", requests), GOAL),
        compare(
            "commits of 10 partitions, in memory", "us CPU", brokers, cost("commit 10", requests // 2), GOAL
        ),
    ]


def _answer_from_memory(ottla: Broker) -> None:
    """Let Ottla promise what Kafka does: a commit is answered when it is in memory."""
    config = AlterableConfig(name="ottla.acks.all.sync", config_operation=0, value="false")
    resource = AlterConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name=GROUP_RECORDS.topic, configs=(config,)
    )
    with PlainClient(ottla.bootstrap) as client:
        answer = client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert answer.responses[0].error_code is ErrorCode.NONE, answer


def restart_seconds(groups: int = GROUPS) -> tuple[float, float]:
    """Return how long Ottla and Apache Kafka take from their start until all groups are listed again."""
    root = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    taken = []
    for server in (
        OttlaNode(root / "ottla"),
        ApacheKafka(root / "apache", {"offsets.topic.num.partitions": "50"}),
    ):
        try:
            server.start()
            _make_groups(server.bootstrap, server.port, groups)
            server.stop()
            started = time.perf_counter()
            server.start()
            _wait_for_groups(server.bootstrap, groups)
            taken.append(time.perf_counter() - started)
        finally:
            server.stop()
    shutil.rmtree(root, ignore_errors=True)
    return taken[0], taken[1]


def _join(broker: Broker, group: str) -> tuple[str, str, int]:
    """Become the only member of a group; return group, member id and generation."""
    with PlainClient(broker.bootstrap) as client:
        _wait_for_coordinator(client, group)
        request = join_request(group, session_timeout_ms=600_000)
        member_id = client.ask(request).member_id
        joined = client.ask(join_request(group, member_id, session_timeout_ms=600_000))
        assert joined.error_code is ErrorCode.NONE, joined
        generation: int = joined.generation_id
        synced = client.ask(sync_request(group, generation, member_id, {member_id: b""}))
        assert synced.error_code is ErrorCode.NONE, synced
        return group, member_id, generation


def _wait_for_coordinator(client: PlainClient, group: str) -> None:
    while client.ask(FindCoordinatorRequest(key=group), 3).error_code in _NOT_YET:
        time.sleep(0.05)
    while client.ask(fetch_request(group), 9).groups[0].error_code in _NOT_YET:
        time.sleep(0.05)


def _make_groups(bootstrap: str, port: int, count: int) -> None:
    Broker("", port, 0, 0.0).create_topic(TOPIC, 3)
    with PlainClient(bootstrap) as client:
        for number in range(50):
            _wait_for_coordinator(client, f"group-{number}")
    connection = connect(port)
    for start in range(0, count, 100):
        frames = b"".join(
            _frame(commit_request(f"group-{number}", {0: 1, 1: 2, 2: 3}, topic=TOPIC), 9)
            for number in range(start, min(start + 100, count))
        )
        exchange_raw(connection, frames, min(100, count - start))
    connection.close()


def exchange_raw(connection: object, frames: bytes, answers: int) -> None:
    """Send different frames at once, and wait for as many answers."""
    connection.sendall(frames)  # type: ignore[attr-defined]
    pending = b""
    while answers:
        pending += connection.recv(1 << 18)  # type: ignore[attr-defined]
        while len(pending) >= 4 and len(pending) >= 4 + int.from_bytes(pending[:4]):
            pending = pending[4 + int.from_bytes(pending[:4]) :]
            answers -= 1


def _wait_for_groups(bootstrap: str, count: int) -> None:
    with PlainClient(bootstrap) as client:
        while True:
            listed = client.ask(list_request())
            if listed.error_code is ErrorCode.NONE and len(listed.groups) >= count:
                return
            time.sleep(0.005)


def _frame(request: object, version: int) -> bytes:
    spec = spec_of(type(request))
    assert spec.api_key is not None
    return encode_request(request, api_of(spec.api_key), version, 1, "bench")


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--restart", action="store_true", help="measure a restart with many groups instead")
    arguments = parser.parse_args()
    if arguments.restart:
        ours, theirs = restart_seconds()
        print(f"start with {GROUPS} groups of 3 offsets: Ottla {ours:.2f} s, Apache Kafka {theirs:.2f} s")
        return
    with both_brokers() as brokers:
        rows(brokers, arguments.scale)


if __name__ == "__main__":
    main()
