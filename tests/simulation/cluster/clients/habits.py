"""Transactions as clients of all kinds end them: empty, aborted before anything was sent, ended twice, with
offsets only, two within a millisecond, and aborted right after a commit.

Nobody else uses the transactional ids here, and no transaction takes long. So a producer may be asked to wait
or to come again, but it is never told that another one has taken its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, Final

from tests.simulation.cluster.clients.raw import PRODUCE_VERSION, RawProducer, ask_leader, raw_cluster
from tests.simulation.cluster.rules.wrong import Wrong

from ottla import Admin, Producer
from ottla.client.cluster import TRANSACTION, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

TOPIC: Final = "habits"
WHERE: Final = TopicPartition(TOPIC, 0)
TIMEOUT_MS: Final = 600_000
"""Nothing here times out, unless a clock jumps."""
QUIET_S_MAX: Final = 60
_FENCED: Final = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH))
_TRANSACTIONAL: Final = 1 << 4
_RAISES_EPOCHS: Final = 5
_CLIENT: Final[dict[str, Any]] = {
    "linger_ms": 0,
    "delivery_timeout_ms": 8_000,
    "max_block_ms": 8_000,
    "request_timeout_ms": 2_000,
    "retry_backoff_ms": 50,
}


class Habits:
    """Ends transactions in all ways."""

    prefix = "habits"
    """What its transactional ids begin with."""

    def __init__(
        self,
        bootstrap: str,
        rng: Random,
        now_ms: Callable[[], int],
        is_over: Callable[[], bool],
        level: Callable[[], int],
        *,
        may_time_out: bool,
    ) -> None:
        """`level` returns transaction.version. With `may_time_out`, clocks jump, or requests come again."""
        self._bootstrap = bootstrap
        self._rng = rng
        self._now_ms = now_ms
        self._is_over = is_over
        self._level = level
        self._may_time_out = may_time_out
        self._number = 0
        # Ids whose last transaction may be open.
        self._open: list[str] = []

    async def create_topic(self, admin: Admin) -> None:
        """Create what is written to here."""
        try:
            await admin.topics.create(TOPIC, partitions=1)
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def work(self) -> None:
        """End one transaction after the other."""
        acts = self._acts()
        while not self._is_over():
            self._number += 1
            name = f"{self.prefix}-{self._number}"
            self._open.append(name)
            try:
                async with asyncio.timeout(20):
                    await self._rng.choice(acts)(name)
                    self._open.remove(name)
            except BrokerError as error:
                self._check(error.error_code, str(error))
                await asyncio.sleep(0.1)
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.1)

        await self._end_open()

    def _acts(self) -> tuple[Callable[[str], Awaitable[None]], ...]:
        return self._use_producer, self._use_producer, self._abort_after_commit

    async def _end_open(self) -> None:
        """End what was left open. It would time out much later, since nobody here is to time out."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + QUIET_S_MAX
        while self._open and loop.time() < deadline:
            try:
                async with asyncio.timeout(10), raw_cluster(self._bootstrap) as cluster:
                    while self._open:
                        name = self._open[-1]
                        if (await self._ask(cluster, name, begins(name))).error_code is ErrorCode.NONE:
                            self._open.pop()
                        await asyncio.sleep(0.05)
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.2)

    def _check(self, code: ErrorCode, what: str) -> None:
        if code in _FENCED and not self._may_time_out:
            raise Wrong(f"fencing: a producer that nobody has replaced is fenced: {what}")

    async def _use_producer(self, name: str) -> None:
        async with Producer(
            self._bootstrap, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS, **_CLIENT
        ) as producer:
            habits: Mapping[str, Callable[[Producer], Awaitable[None]]] = {
                "empty": _commit_nothing,
                "aborted empty": _abort_nothing,
                "aborted at once": _abort_at_once,
                "offsets": self._commit_offsets,
                "two": _commit_two,
            }
            for _ in range(self._rng.randint(2, 5)):
                await habits[self._rng.choice(sorted(habits))](producer)

    async def _commit_offsets(self, producer: Producer) -> None:
        producer.begin_transaction()
        await producer.send_offsets_to_transaction({WHERE: self._number}, "group habits")
        await producer.commit_transaction()

    async def _abort_after_commit(self, name: str) -> None:
        """Commit, and abort the next transaction before it has anything, as soon as its epoch is known.

        The markers of the first one may not be written yet. Then maybe end once more what is ended.
        """
        if self._level() < 2:
            return
        async with raw_cluster(self._bootstrap) as cluster:
            begun = await self._ask(cluster, name, begins(name))
            go_on_if(begun.error_code is ErrorCode.NONE)
            mine: tuple[int, int] | None = (begun.producer_id, begun.producer_epoch)
            for _ in range(self._rng.randint(1, 4)):
                assert mine is not None, "else it is given up"
                go_on_if(await self._write(cluster, name, mine))
                ended = await self._end(cluster, name, mine, committed=True)
                go_on_if(ended is not None)
                if self._rng.random() < 0.3:
                    await self._end(cluster, name, mine, committed=True)
                assert ended is not None, "else it is given up"
                mine = await self._end(cluster, name, ended, committed=False)
                go_on_if(mine is not None)

    async def _write(self, cluster: Cluster, name: str, mine: tuple[int, int], sequence: int = 0) -> bool:
        topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=(WHERE.partition,))
        added = await self._ask(
            cluster,
            name,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=mine[0],
                v3_and_below_producer_epoch=mine[1],
                v3_and_below_topics=(topic,),
            ),
            3,
        )
        code = added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        self._check(code, f"{name} adds a partition in epoch {mine[1]}")
        if code is not ErrorCode.NONE:
            return False
        producer = RawProducer(cluster, WHERE, self._now_ms(), mine[0])
        request = producer.request(mine[1], sequence, attributes=_TRANSACTIONAL, transactional_id=name)
        answer = await ask_leader(cluster, WHERE, request, PRODUCE_VERSION)
        code = answer.responses[0].partition_responses[0].error_code
        self._check(code, f"{name} writes in epoch {mine[1]}")
        return code is ErrorCode.NONE

    async def _end(
        self, cluster: Cluster, name: str, mine: tuple[int, int], *, committed: bool
    ) -> tuple[int, int] | None:
        """End a transaction. Returns the identity of the next one, or None if that took too long."""
        request = EndTxnRequest(
            transactional_id=name, producer_id=mine[0], producer_epoch=mine[1], committed=committed
        )
        for _ in range(20):
            answer = await self._ask(cluster, name, request, _RAISES_EPOCHS)
            self._check(answer.error_code, f"{name} ends a transaction in epoch {mine[1]}, {committed=}")
            if answer.error_code is ErrorCode.NONE:
                return answer.producer_id, answer.producer_epoch
            await asyncio.sleep(0.02)
        return None

    async def _ask(self, cluster: Cluster, name: str, request: object, version: int | None = None) -> Any:
        node_id = await cluster.coordinator(TRANSACTION, name)
        try:
            return await cluster.ask_node(node_id, request, version)
        except ClientError:
            cluster.forget_coordinator(TRANSACTION, name)
            raise


def go_on_if(is_so: bool) -> None:
    """Give up if it is not so: the transaction may be open, and is ended later."""
    if not is_so:
        raise TimeoutError


def begins(name: str) -> InitProducerIdRequest:
    """Return the request that gets the id of a producer, and ends what it has left open."""
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)


async def _commit_nothing(producer: Producer) -> None:
    producer.begin_transaction()
    await producer.commit_transaction()


async def _abort_nothing(producer: Producer) -> None:
    producer.begin_transaction()
    await producer.abort_transaction()


async def _abort_at_once(producer: Producer) -> None:
    producer.begin_transaction()
    sent = await producer.send(TOPIC, b"never", partition=0)
    await producer.abort_transaction()
    del sent


async def _commit_two(producer: Producer) -> None:
    for _ in range(2):
        producer.begin_transaction()
        await producer.send(TOPIC, b"soon", partition=0)
        await producer.commit_transaction()
