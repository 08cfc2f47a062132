"""A coordinator whose log cannot commit answers all the same: clients are told to come again."""

from typing import Final

from tests.simulation.cluster.test_cut_off_coordinator import Deployment

from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.runtime.shard import Shard
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

IDS: Final = [f"payments-{number}" for number in range(100)]
TOPIC: Final = "__transaction_state"
COMES_AGAIN: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Transactions(Deployment):
    """A cluster whose controller is on a node without a replica of the transactional id."""

    def __init__(self) -> None:
        super().__init__(nodes=4, voters=1)
        while self.ask(self.cluster[1], _find_request(IDS[0]), 3).error_code is not ErrorCode.NONE:
            self.simulation.run_for(100)
        node = self.cluster[1].node
        assert node is not None
        topic = node.broker.image.topics.find(TOPIC)
        assert topic is not None
        self.id = next(
            one
            for one in IDS
            if 1 not in topic.partitions[partition_of_key(one, len(topic.partitions))].replicas
        )

    def find_transactions(self) -> SimulatedNode:
        """Wait until the id has a coordinator."""
        self.simulation.run_until(lambda: any(self._has_it(one) for one in self.cluster))
        return next(one for one in self.cluster if self._has_it(one))

    def _has_it(self, one: SimulatedNode) -> bool:
        return one.node is not None and isinstance(
            one.node.broker.transactions.coordinator.shards.find(self.id), Shard
        )

    def init(self, one: SimulatedNode) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        error: ErrorCode = self.ask(one, request, 5).error_code
        return error

    def list(self, one: SimulatedNode) -> ListTransactionsResponse:
        request = ListTransactionsRequest(state_filters=(), producer_id_filters=())
        response: ListTransactionsResponse = self.ask(one, request, 1)
        return response


def _find_request(transactional_id: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=transactional_id, key_type=1)


def test_reads_and_writes_have_an_end_while_too_few_replicas_are_in_sync() -> None:
    it = Transactions()
    one = it.find_transactions()
    assert it.init(one) is ErrorCode.NONE
    for other in it.cluster:
        if other.node_id not in (1, one.node_id):
            it.network.cut(one.machine.host, other.machine.host)
            it.network.cut(other.machine.host, one.machine.host)

    # It is appended, and nobody copies it.
    assert it.init(one) is COMES_AGAIN
    request = DescribeTransactionsRequest(transactional_ids=(it.id,))
    (described,) = it.ask(one, request, 0).transaction_states
    assert described.error_code is COMES_AGAIN
    assert it.list(one).error_code is COMES_AGAIN

    it.network.mend_all()
    one = it.find_transactions()
    while (listed := it.list(one)).error_code is COMES_AGAIN:
        it.simulation.run_for(500)
    assert [state.transactional_id for state in listed.transaction_states] == [it.id]
