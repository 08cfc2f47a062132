"""A coordinator that others may have replaced does not answer with offsets that may be old."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.plan import quick_settings

from ottla import Admin
from ottla.coordination.runtime.shard import Shard
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import PORT, SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC: Final = "orders"
OFFSETS: Final = "__consumer_offsets"
KAFKAS_SESSIONS: Final = {
    **quick_settings(),
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
}
"""As long as Kafka's are by default."""


class Deployment:
    """A cluster with a group, whose clients reach all nodes that run."""

    def __init__(
        self, nodes: int = 3, voters: int = 3, settings: Mapping[str, str] = quick_settings()
    ) -> None:
        self.simulation = Simulation(1)
        self.network = SimulatedNetwork(self.simulation)
        # Enough partitions for some to be on any three nodes.
        settings = {**settings, "offsets.topic.num.partitions": "12"}
        self.cluster = SimulatedCluster(self.simulation, self.network, nodes, voters, settings)
        self.loop = simulated_loop(self.simulation, self.network)
        self.cluster.start()
        self.loop.run(self._create())

    async def _create(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.topics.create(TOPIC, partitions=1)
        async with raw_connection(self.cluster[1].machine.host, PORT) as connection:
            # Has the topic of the offsets created.
            await connection.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("any",)), 4)

    def coordinates(self, one: SimulatedNode, group: str) -> bool:
        """Say whether a node takes itself for the coordinator of a group."""
        return one.node is not None and isinstance(
            one.node.broker.groups.coordinator.shards.find(group), Shard
        )

    def find_coordinator(self, group: str) -> SimulatedNode:
        """Wait until a group has a coordinator."""
        self.simulation.run_until(lambda: any(self.coordinates(one, group) for one in self.cluster))
        return next(one for one in self.cluster if self.coordinates(one, group))

    def ask(self, one: SimulatedNode, request: Any, version: int) -> Any:
        """Send a request to one node."""

        async def ask() -> Any:
            async with raw_connection(one.machine.host, PORT) as connection:
                return await connection.ask(request, version, timeout_s=10)

        return self.loop.run(ask())

    def commit(self, one: SimulatedNode, group: str, offset: int) -> ErrorCode:
        """Commit an offset of the topic."""
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=None
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
        request = OffsetCommitRequest(group_id=group, member_id="", topics=(topic,))
        error: ErrorCode = self.ask(one, request, 9).topics[0].partitions[0].error_code
        return error

    def committed(self, one: SimulatedNode, group: str) -> tuple[ErrorCode, int | None]:
        """Ask a node for the committed offset."""
        topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))
        (found,) = self.ask(one, request, 9).groups
        offset = found.topics[0].partitions[0].committed_offset if found.topics else None
        return found.error_code, offset


def test_a_coordinator_that_is_cut_off_does_not_answer_with_old_offsets() -> None:
    it = Deployment()
    old = it.find_coordinator("copier")
    assert it.commit(old, "copier", 1) is ErrorCode.NONE
    others = [one for one in it.cluster if one is not old]
    for one in others:
        it.network.cut(old.machine.host, one.machine.host)
        it.network.cut(one.machine.host, old.machine.host)
    it.simulation.run_until(lambda: any(it.coordinates(one, "copier") for one in others))
    new = next(one for one in others if it.coordinates(one, "copier"))
    assert it.commit(new, "copier", 2) is ErrorCode.NONE
    assert it.coordinates(old, "copier"), "it cannot know better"

    assert it.committed(old, "copier") == (ErrorCode.NOT_COORDINATOR, None)
    assert it.committed(new, "copier") == (ErrorCode.NONE, 2)

    it.network.mend_all()
    it.simulation.run_until(lambda: not it.coordinates(old, "copier"))


class SlowListener:
    """Needs as long as the test wants to prepare for new metadata."""

    def __init__(self) -> None:
        self.release: Callable[[], None] = lambda: None

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, done: Callable[[], None]) -> bool:
        self.release = done
        return False

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Do nothing."""


def test_a_coordinator_that_is_back_does_not_answer_before_it_has_read_what_happened() -> None:
    it = Deployment(settings=KAFKAS_SESSIONS)
    old = it.find_coordinator("copier")
    assert it.commit(old, "copier", 1) is ErrorCode.NONE
    others = [one for one in it.cluster if one is not old]
    for one in others:
        it.network.cut(old.machine.host, one.machine.host)
        it.network.cut(one.machine.host, old.machine.host)
    it.simulation.run_until(lambda: any(it.coordinates(one, "copier") for one in others))
    new = next(one for one in others if it.coordinates(one, "copier"))
    assert it.commit(new, "copier", 2) is ErrorCode.NONE
    it.simulation.run_for(10_000)
    assert old.node is not None
    slow = SlowListener()
    old.node.broker.metadata.listen(slow)

    it.network.mend_all()
    # Its heartbeats are answered, while it still believes that it leads.
    for _ in range(4):
        it.simulation.run_for(1_000)
        assert it.coordinates(old, "copier")
        assert it.committed(old, "copier") == (ErrorCode.NOT_COORDINATOR, None)

    while it.coordinates(old, "copier"):
        slow.release()
        it.simulation.run_for(10)


def test_a_coordinator_serves_without_a_controller_as_long_as_its_followers_do() -> None:
    it = Deployment(nodes=4, voters=1)
    group = _find_group_without(it, 1)
    one = it.find_coordinator(group)
    assert it.commit(one, group, 1) is ErrorCode.NONE
    it.cluster[1].kill()
    it.simulation.run_for(30_000)

    assert it.committed(one, group) == (ErrorCode.NONE, 1)

    # Of those who could lead instead, one can no longer be asked.
    replicas = _replicas_of(it, group)
    next(other for other in it.cluster if other.node_id in replicas and other is not one).kill()
    assert it.committed(one, group) == (ErrorCode.NOT_COORDINATOR, None)


def _find_group_without(it: Deployment, node_id: int) -> str:
    """Return a group whose offsets are not on a node."""
    it.find_coordinator("any")
    groups = (f"group-{number}" for number in range(1000))
    return next(group for group in groups if node_id not in _replicas_of(it, group))


def _replicas_of(it: Deployment, group: str) -> tuple[int, ...]:
    node = it.cluster[2].node
    assert node is not None
    partition = node.broker.groups.coordinator.shards.partition_of(group)
    topic = node.broker.image.topics.find(OFFSETS)
    assert topic is not None
    assert partition is not None
    return tuple(topic.partitions[partition].replicas)
