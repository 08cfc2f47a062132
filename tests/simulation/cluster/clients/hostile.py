"""Clients that do wrong things on purpose, and hold the cluster to its refusals.

A producer leaves gaps in its sequence, sends again what it sent before, and goes on in an epoch that is over.
A coordinator that was replaced writes markers. A reader repeats a request of its session, and asks in a
leader epoch that is over. Others ask a new leader where its log ends before it can know.

Only what must never be taken is complained about. Whatever else a node answers, the client begins again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from tests.simulation.cluster.clients.raw import (
    PRODUCE_VERSION,
    RawProducer,
    ask_coordinator,
    ask_leader,
    raw_cluster,
    raw_connection,
)
from tests.simulation.cluster.rules.wrong import must
from tests.simulation.storage.batches import SEQUENCES, TRANSACTIONAL

from ottla import Admin
from ottla.client.cluster import GROUP, Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TOPIC: Final = "hostile"
SEQUENCED: Final = TopicPartition(TOPIC, 0)
MARKED: Final = TopicPartition(TOPIC, 1)
"""Markers are written here, and batches with `acks=1`: one replica in sync is enough for these."""
_FETCH_VERSION: Final = 12
_LATEST: Final = -1
_TRANSACTION_TIMEOUT_MS: Final = 5_000
_TRANSACTIONS_V2: Final = 2


class Lag(NamedTuple):
    """A leader that does not know yet all that was committed before it was elected."""

    node_id: int
    topic: str
    partition: int
    leader_epoch: int
    committed: int


class Seer(Protocol):
    """Somebody who sees the state of all nodes."""

    def lagging_leaders(self) -> list[Lag]:
        """Return the newest leaders that do not know yet what is committed."""

    def leaders_of(self, topic: str, partition: int) -> list[int]:
        """Return the nodes that lead a partition, as far as they know."""


class Hostile:
    """What the clients here have in common."""

    def __init__(
        self,
        bootstrap: str,
        rng: Random,
        now_ms: Callable[[], int],
        is_over: Callable[[], bool],
        level: Callable[[], int],
        seer: Seer,
    ) -> None:
        """`level` returns transaction.version."""
        self._bootstrap = bootstrap
        self._rng = rng
        self._now_ms = now_ms
        self._is_over = is_over
        self._level = level
        self._seer = seer

    async def create_topic(self, admin: Admin) -> None:
        """Create what is written to here."""
        try:
            await admin.topics.create(TOPIC, partitions=2)
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _repeat(self, act: Callable[[Cluster], Awaitable[None]]) -> None:
        """Do something again and again. An answer that does not come, or a passing error, begins it again."""
        while not self._is_over():
            try:
                async with asyncio.timeout(20), raw_cluster(self._bootstrap) as cluster:
                    while not self._is_over():
                        await act(cluster)
                        await asyncio.sleep(self._rng.uniform(0.02, 0.2))
            except (ClientError, TimeoutError):
                await asyncio.sleep(0.1)

    # Producers

    async def break_sequences(self) -> None:
        """Be a producer that cannot count."""
        await self._repeat(self._break_sequence)

    async def _break_sequence(self, cluster: Cluster) -> None:
        producer = RawProducer(cluster, SEQUENCED, self._now_ms())
        await producer.begin()
        offsets = [await _sent(producer, 0, sequence) for sequence in range(3)]
        again, offset = await producer.send(0, 2)
        must(
            again is not ErrorCode.NONE or offset == offsets[2],
            f"order: a batch was appended at {offsets[2]}, and again at {offset}",
        )
        await _refused(producer, 0, 5, "a gap in the sequence of a producer")
        await _refused(producer, 1, 3, "an epoch that does not begin with its first batch")
        offsets.append(await _sent(producer, 1, 0))
        offsets.append(await _sent(producer, 1, 1))
        must(offsets == sorted(set(offsets)), f"order: batches of one producer are at {offsets}")
        await _refused(producer, 0, 3, "a batch of a producer epoch that is over")
        await _refused(producer, 0, 1, "a duplicate of a producer epoch that is over")
        await self._count_over_the_end(cluster)

    async def _count_over_the_end(self, cluster: Cluster) -> None:
        """After the last sequence comes the first."""
        producer = RawProducer(cluster, SEQUENCED, self._now_ms())
        await producer.begin()
        first = await _sent(producer, 0, SEQUENCES - 2, records=4)
        code, offset = await producer.send(0, 2)
        must(
            code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            "order: a batch was refused that goes on where the last one ended, over the last sequence",
        )
        if code is ErrorCode.NONE:
            must(offset >= first + 4, f"order: the batch after {first} is at {offset}")

    # Transactions

    async def use_old_epochs(self) -> None:
        """Be a transactional producer that was replaced twice."""
        await self._repeat(self._use_old_epochs)

    async def _use_old_epochs(self, cluster: Cluster) -> None:
        name = "hostile-epochs"
        old = await _init(cluster, name)
        await _init(cluster, name)
        mine = await _init(cluster, name)
        if old[0] != mine[0]:
            return
        await self._write(cluster, name, mine)
        await self._commit_offsets(cluster, name, mine)
        code = await self._commit_offset(cluster, name, old)
        must(
            code is not ErrorCode.NONE,
            f"fencing: offsets of epoch {old[1]} were taken, but {mine[1]} is the present one",
        )
        await self._end(cluster, name, mine, committed=True)
        request = _end_request(name, old, committed=True)
        code = ErrorCode.CONCURRENT_TRANSACTIONS
        while code is ErrorCode.CONCURRENT_TRANSACTIONS:
            code = (await ask_coordinator(cluster, name, request, self._end_version())).error_code
            await asyncio.sleep(0.02)
        must(
            code is not ErrorCode.NONE,
            f"fencing: a producer of epoch {old[1]} could commit, but {mine[1]} is the present one",
        )

    async def begin_too_early(self) -> None:
        """Begin again while the last transaction is being ended."""
        await self._repeat(self._begin_too_early)

    async def _begin_too_early(self, cluster: Cluster) -> None:
        name = "hostile-early"
        mine = await _init(cluster, name)
        await self._write(cluster, name, mine)
        node_id = await cluster.coordinator(1, name)
        connection = await cluster.connection(node_id)
        # On one connection: the second comes right after the first.
        ending = connection.send(_end_request(name, mine, committed=True), self._end_version())
        beginning = connection.send(_init_request(name))
        async with asyncio.timeout(2):
            await asyncio.gather(ending, beginning, return_exceptions=True)
        cluster.forget_coordinator(1, name)

    async def write_markers(self) -> None:
        """Be a coordinator that was replaced, and one that writes its markers twice."""
        await self._repeat(self._write_markers)

    async def _write_markers(self, cluster: Cluster) -> None:
        producer = RawProducer(cluster, MARKED, self._now_ms())
        await producer.begin()
        await _sent(producer, 0, 0)
        who = (producer.producer_id, 0)
        if await self._mark(cluster, who, coordinator_epoch=7) is not ErrorCode.NONE:
            return
        code = await self._mark(cluster, who, coordinator_epoch=6)
        must(
            code is not ErrorCode.NONE,
            "fencing: a marker of coordinator epoch 6 was taken, but one of epoch 7 was there before",
        )
        for _ in range(5):
            await self._abort(cluster)

    async def _abort(self, cluster: Cluster) -> None:
        """Abort a transaction, with a marker that is there before the coordinator has decided.

        It says the same as the one that the coordinator writes later. Nobody may follow the leader any more.
        """
        name = "hostile-marked"
        mine = await _init(cluster, name)
        await self._add_partition(cluster, name, mine)
        raised = self._level() >= _TRANSACTIONS_V2
        producer = RawProducer(cluster, MARKED, self._now_ms(), mine[0])
        batch = producer.request(mine[1], 0, attributes=TRANSACTIONAL, transactional_id=name, acks=1)
        marker = self._marker((mine[0], mine[1] + raised), 0, is_abort=True)
        for node_id in self._seer.leaders_of(*MARKED):
            # If there are two, the older one writes what nobody copies, and cuts it off later.
            connection = await cluster.connection(node_id)
            await asyncio.wait((connection.send(batch, PRODUCE_VERSION),), timeout=0.1)
            await asyncio.wait((connection.send(marker, 2),), timeout=0.05)
        await self._end(cluster, name, mine, committed=False)

    async def _mark(self, cluster: Cluster, who: tuple[int, int], coordinator_epoch: int) -> ErrorCode:
        answer = await ask_leader(cluster, MARKED, self._marker(who, coordinator_epoch, is_abort=False), 1)
        code: ErrorCode = answer.markers[0].topics[0].partitions[0].error_code
        return code

    def _marker(
        self, who: tuple[int, int], coordinator_epoch: int, *, is_abort: bool
    ) -> WriteTxnMarkersRequest:
        marker = WritableTxnMarker(
            producer_id=who[0],
            producer_epoch=who[1],
            transaction_result=not is_abort,
            topics=(WritableTxnMarkerTopic(name=MARKED.topic, partition_indexes=(MARKED.partition,)),),
            coordinator_epoch=coordinator_epoch,
            transaction_version=min(self._level(), _TRANSACTIONS_V2),
        )
        return WriteTxnMarkersRequest(markers=(marker,))

    async def _write(self, cluster: Cluster, name: str, who: tuple[int, int]) -> None:
        """Write something in a transaction."""
        await self._add_partition(cluster, name, who)
        producer = RawProducer(cluster, MARKED, self._now_ms(), who[0])
        code, _ = await producer.send(who[1], 0, attributes=TRANSACTIONAL, transactional_id=name)
        _expect(code)

    async def _add_partition(self, cluster: Cluster, name: str, who: tuple[int, int]) -> None:
        topic = AddPartitionsToTxnTopic(name=MARKED.topic, partitions=(MARKED.partition,))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=(topic,),
        )
        for _ in range(20):
            answer = await ask_coordinator(cluster, name, request, 3)
            code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(0.05)
        _expect(code)

    async def _commit_offsets(self, cluster: Cluster, name: str, who: tuple[int, int]) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=who[0], producer_epoch=who[1], group_id=name
        )
        _expect((await ask_coordinator(cluster, name, request, 3)).error_code)
        _expect(await self._commit_offset(cluster, name, who))

    async def _commit_offset(self, cluster: Cluster, name: str, who: tuple[int, int]) -> ErrorCode:
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=who[1], committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=name,
            producer_id=who[0],
            producer_epoch=who[1],
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        cluster.forget_coordinator(GROUP, name)
        node_id = await cluster.coordinator(GROUP, name)
        answer = await cluster.ask_node(node_id, request, 3)
        code: ErrorCode = answer.topics[0].partitions[0].error_code
        return code

    async def _end(self, cluster: Cluster, name: str, who: tuple[int, int], *, committed: bool) -> None:
        """End a transaction, and wait until it has ended everywhere."""
        for _ in range(40):
            request = _end_request(name, who, committed=committed)
            code = (await ask_coordinator(cluster, name, request, self._end_version())).error_code
            if code is ErrorCode.NONE:
                break
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                _expect(code)
            await asyncio.sleep(0.05)

    def _end_version(self) -> int:
        return 5 if self._level() >= _TRANSACTIONS_V2 else 4

    # Readers

    async def repeat_fetches(self) -> None:
        """Be a reader that repeats a request of its session, or knows an old leader epoch only."""
        await self._repeat(self._repeat_fetch)

    async def _repeat_fetch(self, cluster: Cluster) -> None:
        await cluster.refresh([TOPIC])
        view = await cluster.leader(SEQUENCED)
        connection = await cluster.connection(view.leader)
        first = await connection.ask(_fetch(), _FETCH_VERSION)
        if first.error_code is ErrorCode.NONE and first.session_id:
            again = _fetch(session_id=first.session_id, session_epoch=1)
            _expect((await connection.ask(again, _FETCH_VERSION)).error_code)
            code = (await connection.ask(again, _FETCH_VERSION)).error_code
            must(
                code is not ErrorCode.NONE,
                "session: a request of a fetch session was repeated, and answered as if it were the next",
            )
        if view.leader_epoch > 0 and await self._knows_epoch(connection, view.leader_epoch):
            old = await connection.ask(_fetch(leader_epoch=view.leader_epoch - 1), _FETCH_VERSION)
            code = old.responses[0].partitions[0].error_code
            must(
                code is not ErrorCode.NONE,
                f"session: a fetch for epoch {view.leader_epoch - 1} was answered in {view.leader_epoch}",
            )

    async def _knows_epoch(self, connection: Any, leader_epoch: int) -> bool:
        """Say whether a leader knows its epoch already: the client may have heard of it from another node."""
        now = await connection.ask(_fetch(leader_epoch=leader_epoch), _FETCH_VERSION)
        return bool(now.responses) and now.responses[0].partitions[0].error_code is ErrorCode.NONE

    async def ask_new_leaders(self, address_of: Callable[[int], tuple[str, int]]) -> None:
        """Ask leaders where their logs end that cannot know it yet (KIP-207)."""
        while not self._is_over():
            await asyncio.sleep(0.002)
            for lag in self._seer.lagging_leaders()[:3]:
                try:
                    async with raw_connection(*address_of(lag.node_id)) as connection:
                        await self._ask_new_leader(connection, lag)
                except (ClientError, TimeoutError):
                    continue

    async def _ask_new_leader(self, connection: Any, lag: Lag) -> None:
        ask = ListOffsetsPartition(
            partition_index=lag.partition, current_leader_epoch=lag.leader_epoch, timestamp=_LATEST
        )
        topic = ListOffsetsTopic(name=lag.topic, partitions=(ask,))
        answer = await connection.ask(ListOffsetsRequest(replica_id=-1, topics=(topic,)), 6)
        told = answer.topics[0].partitions[0]
        must(
            told.error_code is not ErrorCode.NONE or told.offset >= lag.committed,
            f"committed: the leader of {lag.topic}-{lag.partition} in epoch {lag.leader_epoch} says that its "
            f"log ends at {told.offset}, but {lag.committed} were committed before",
        )


def _expect(code: ErrorCode) -> None:
    """Begin again after an error that may happen."""
    if code is not ErrorCode.NONE:
        raise BrokerError(code, "it happens")


async def _sent(producer: RawProducer, epoch: int, sequence: int, records: int = 1) -> int:
    code, offset = await producer.send(epoch, sequence, records=records)
    _expect(code)
    return offset


async def _refused(producer: RawProducer, epoch: int, sequence: int, what: str) -> None:
    code, offset = await producer.send(epoch, sequence)
    must(code is not ErrorCode.NONE, f"order: {what} was taken, at {offset}")


def _init_request(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)


async def _init(cluster: Cluster, name: str) -> tuple[int, int]:
    """Be a new instance of a producer. Returns its id and epoch."""
    for _ in range(40):
        found = await ask_coordinator(cluster, name, _init_request(name), 4)
        if found.error_code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            break
        await asyncio.sleep(0.05)
    _expect(found.error_code)
    return found.producer_id, found.producer_epoch


def _end_request(name: str, who: tuple[int, int], *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=committed
    )


def _fetch(session_id: int = 0, session_epoch: int = 0, leader_epoch: int = -1) -> FetchRequest:
    partition = FetchPartition(
        partition=SEQUENCED.partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=0,
        partition_max_bytes=1_000,
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=session_epoch if leader_epoch < 0 else -1,
        topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
    )
