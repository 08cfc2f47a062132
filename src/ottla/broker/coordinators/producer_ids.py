"""Producer ids, out of blocks that the controller gives away.

A block of 1,000 is taken before it is used, and the rest of it is lost when the node stops: an id is never
given twice, whatever happens.
"""

from collections import deque

from ottla.broker.basic_node import BasicNode
from ottla.broker.deferred import Deferred
from ottla.quorum.controller.producer_ids import OWN_RANGE_START
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


class ProducerIds:
    """The ids of the current block, and the requests that wait for the next one."""

    def __init__(self, broker: BasicNode) -> None:
        self._broker = broker
        self._ids = iter(range(0))
        self._waiting: deque[Deferred[int | ErrorCode]] = deque()
        self._is_asking = False

    def next(self) -> Deferred[int | ErrorCode]:
        """Return an id that nobody had before, or why there is none."""
        answer: Deferred[int | ErrorCode] = Deferred()
        self._waiting.append(answer)
        if not self._is_asking:
            self._serve()
        return answer

    def _serve(self) -> None:
        """Give ids to those who wait, in order, and ask for a block when there are too few."""
        while self._waiting:
            producer_id = next(self._ids, None)
            if producer_id is not None and self._is_of_others(producer_id):
                self._ids, producer_id = iter(range(0)), None
            if producer_id is None:
                self._ask_for_block()
                return
            self._waiting.popleft().resolve(producer_id)

    def _is_of_others(self, producer_id: int) -> bool:
        """Say whether the cluster has begun to allocate ids in a range of its own since this block."""
        return producer_id < OWN_RANGE_START <= self._broker.image.next_producer_id

    def _ask_for_block(self) -> None:
        def take(block: AllocateProducerIdsResponse) -> None:
            if block.error_code is ErrorCode.NONE:
                self._is_asking = False
                self._ids = iter(
                    range(block.producer_id_start, block.producer_id_start + block.producer_id_len)
                )
                self._serve()
            elif block.error_code is ErrorCode.NOT_CONTROLLER:
                # As in Kafka: clients know this error, and ask again.
                refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            else:
                refuse(block.error_code)

        def refuse(error_code: ErrorCode) -> None:
            self._is_asking = False
            waiting, self._waiting = self._waiting, deque()
            for answer in waiting:
                answer.resolve(error_code)

        broker = self._broker
        ask = AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=broker.broker_epoch)
        self._is_asking = True
        broker.controller.ask(ask).when_done(take, lambda _: refuse(ErrorCode.UNKNOWN_SERVER_ERROR))
