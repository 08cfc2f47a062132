"""What a leader acknowledges is judged by the configs that hold, also if its metadata is late."""

from typing import Final

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.test_cut_off_coordinator import Deployment, SlowListener
from tests.simulation.storage.batches import Record, make_batch

from ottla import Admin
from ottla.broker.logs.partition import Partition
from ottla.testing.simulation.node import PORT
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PAYMENTS: Final = "payments"


class Payments(Deployment):
    """A topic with two replicas, one of which may acknowledge alone. The controller is on a third node."""

    def __init__(self) -> None:
        super().__init__(nodes=3, voters=1)
        self.leader, self.follower = self.cluster[2], self.cluster[3]
        self.loop.run(self._create_payments())
        self.partition = self._find_partition()

    async def _create_payments(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.topics.create(PAYMENTS, assignment={0: (2, 3)}, configs={"min.insync.replicas": "1"})

    def _find_partition(self) -> Partition:
        assert self.leader.node is not None
        partitions = self.leader.node.broker.partitions
        self.simulation.run_until(lambda: partitions.find(PAYMENTS, 0) is not None)
        partition = partitions.find(PAYMENTS, 0)
        assert partition is not None
        return partition

    async def ask_for(self, in_sync: str) -> None:
        """Have the topic ask for so many replicas in sync."""
        async with Admin(self.cluster[1].bootstrap) as admin:
            await admin.configs.alter(ResourceType.TOPIC, PAYMENTS, {"min.insync.replicas": in_sync})

    def write(self, value: bytes, acks: int = -1) -> ErrorCode:
        """Write to the leader, and return what it says."""

        async def write() -> ErrorCode:
            records = memoryview(make_batch([Record(None, value, 1)]))
            data = PartitionProduceData(partition_index=0, records=records)
            topic = TopicProduceData(name=PAYMENTS, partition_data=(data,))
            request = ProduceRequest(acks=acks, timeout_ms=2_000, topic_data=(topic,))
            async with raw_connection(self.leader.machine.host, PORT) as connection:
                answer = await connection.ask(request, 11, timeout_s=10)
                error: ErrorCode = answer.responses[0].partition_responses[0].error_code
                return error

        return self.loop.run(write())


def test_a_leader_with_late_metadata_does_not_acknowledge_alone_what_two_must_have() -> None:
    it = Payments()
    assert it.write(b"first") is ErrorCode.NONE
    assert it.leader.node is not None
    slow = SlowListener()
    it.leader.node.broker.metadata.listen(slow)
    it.loop.run(it.ask_for("2"))
    one, other = it.leader.machine.host, it.follower.machine.host
    it.network.cut(one, other)
    it.network.cut(other, one)
    # The follower falls behind.
    assert it.write(b"unsafe", acks=1) is ErrorCode.NONE
    controller = it.cluster[1].node
    assert controller is not None

    def eligible() -> tuple[int, ...]:
        topic = controller.broker.image.topics.find(PAYMENTS)
        assert topic is not None
        return topic.partitions[0].eligible_leader_replicas or ()

    it.simulation.run_until(lambda: eligible() == (3,))
    it.simulation.run_for(1_000)
    assert it.write(b"second") is not ErrorCode.NONE, "3 may be elected without it"

    while it.partition.in_sync != {2}:
        slow.release()
        it.simulation.run_for(10)
    assert it.write(b"third") is ErrorCode.NOT_ENOUGH_REPLICAS
