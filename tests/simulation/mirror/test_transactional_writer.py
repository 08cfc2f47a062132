"""The writer of MirrorMaker 2's way: all batches of a round or none, in order, and nothing left open."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.simulation.cluster.clients.raw import RawProducer, ask_coordinator, raw_cluster
from tests.simulation.mirror.world import Clients, TwoClusters, client_of, until, values

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, RequestTimedOut
from ottla.mirror.maker import transactional_writer
from ottla.mirror.maker.batches import Outgoing
from ottla.mirror.maker.transactional_writer import PartitionRefused, TransactionalWriter
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TRANSACTIONAL_BIT
from ottla.records.builder import build_batch
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

ID = "ottla-mirror.A->B"
ONE, TWO = TopicPartition("payments", 0), TopicPartition("payments", 1)


def outgoing(*contents: bytes) -> Outgoing:
    return Outgoing(
        build_batch([(place, 1000, None, value, ()) for place, value in enumerate(contents)]),
        len(contents),
        (),
    )


@asynccontextmanager
async def writer_of(clients: Clients) -> AsyncIterator[tuple[TransactionalWriter, Cluster]]:
    bootstrap = clients.target_bootstrap
    async with client_of(bootstrap) as cluster:
        yield TransactionalWriter(cluster, {"bootstrap.servers": bootstrap}, ID), cluster


async def make_payments(clients: Clients) -> None:
    await clients.target.topics.create("payments", partitions=2)


async def stable_ends(admin: Admin) -> list[int]:
    found = await admin.offsets.list({ONE: -1, TWO: -1}, read_committed=True)
    return [found[where].offset for where in (ONE, TWO)]


def test_batches_are_written_in_order_and_their_offsets_are_known() -> None:
    async def story(clients: Clients) -> None:
        await make_payments(clients)
        async with writer_of(clients) as (writer, _):
            await writer.start(clients.target, [ONE, TWO])
            many = [outgoing(b"%d" % number, b"%d+" % number) for number in range(20)]
            offsets = await writer.write({ONE: many, TWO: [outgoing(b"two")]})
            assert offsets == {ONE: list(range(0, 40, 2)), TWO: [0]}
            # Each transaction leaves a marker.
            assert await writer.write({ONE: [outgoing(b"next"), outgoing(b"last")]}) == {ONE: [41, 42]}
        found = await values(clients.target_bootstrap, ONE)
        expected = [text for number in range(20) for text in (b"%d" % number, b"%d+" % number)]
        assert found == [*expected, b"next", b"last"]
        assert await values(clients.target_bootstrap, TWO) == [b"two"]

    TwoClusters().run(story)


class Conversations:
    """What the leaders of a cluster are asked to write, and what a test has them answer instead."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[ProduceRequest] = []
        self.refusals: list[dict[int, ErrorCode]] = []
        """Which partitions refuse the next requests. Such a request is not sent at all."""
        self.forget: int | None = None
        """A partition that no answer mentions."""
        self.under_way = self.under_way_max = 0
        self._connection = cluster.connection
        monkeypatch.setattr(cluster, "connection", self._overheard)

    async def _overheard(self, *args: Any) -> "Overheard":
        return Overheard(await self._connection(*args), self)

    def partitions(self) -> list[list[int]]:
        """Return which partitions each request has had batches for."""
        return [[part.partition_index for part in _parts(request)] for request in self.asked]


class Overheard:
    """A connection of such a conversation."""

    def __init__(self, connection: BrokerConnection, conversations: Conversations) -> None:
        self._connection = connection
        self._conversations = conversations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def ask(self, request: Any, *args: Any, **options: Any) -> Any:
        it = self._conversations
        if not isinstance(request, ProduceRequest):
            return await self._connection.ask(request, *args, **options)
        it.asked.append(request)
        it.under_way += 1
        it.under_way_max = max(it.under_way_max, it.under_way)
        try:
            if it.refusals:
                return _refused(request, it.refusals.pop(0))
            answer = await self._connection.ask(request, *args, **options)
        finally:
            it.under_way -= 1
        return _without(answer, it.forget)


def _parts(request: ProduceRequest) -> list[PartitionProduceData]:
    return [part for topic in request.topic_data for part in topic.partition_data]


def _refused(request: ProduceRequest, error_codes: dict[int, ErrorCode]) -> ProduceResponse:
    """Return an answer with errors. What has none would have been written at offset 77."""
    (topic,) = request.topic_data
    answered = tuple(
        PartitionProduceResponse(
            partition_index=part.partition_index,
            error_code=error_codes.get(part.partition_index, ErrorCode.NONE),
            base_offset=77,
            error_message="so says a test",
        )
        for part in topic.partition_data
    )
    return ProduceResponse(
        responses=(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answered),
        )
    )


def _without(answer: ProduceResponse, partition: int | None) -> ProduceResponse:
    (topic,) = answer.responses
    left = tuple(part for part in topic.partition_responses if part.partition_index != partition)
    return ProduceResponse(
        responses=(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=left),)
    )


@asynccontextmanager
async def overheard(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[TransactionalWriter, Conversations]]:
    """Have a writer that has begun, and whose requests to write are overheard."""
    async with writer_of(clients) as (writer, cluster):
        await make_payments(clients)
        await writer.start(clients.target, [ONE, TWO])
        yield writer, Conversations(cluster, monkeypatch)


def test_a_request_has_one_batch_of_each_partition_and_few_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            ones = [outgoing(b"%d" % number) for number in range(12)]
            await writer.write({ONE: ones, TWO: ones[:2]})
            assert conversations.partitions() == [[0, 1], [0, 1]] + [[0]] * 10
            assert conversations.under_way_max == 5

    TwoClusters().run(story)


def test_a_request_has_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # One batch is always taken, and no other beside one that is large already.
    batches = [outgoing(b"x" * 500), outgoing(b"y")]
    monkeypatch.setattr(transactional_writer, "_REQUEST_BYTES_MAX", len(batches[0].content))

    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            first = [outgoing(b"first")]
            await writer.write({ONE: [*first, *batches], TWO: [*first, *batches]})
            assert conversations.partitions() == [[0, 1], [0], [0, 1], [1]]

    TwoClusters().run(story)


def test_a_partition_that_still_ends_the_last_transaction_gets_its_first_batch_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            ends = {1: ErrorCode.CONCURRENT_TRANSACTIONS}
            conversations.refusals = [{**ends, 0: ErrorCode.CONCURRENT_TRANSACTIONS}, ends]
            with pytest.raises(BrokerError) as gap:
                # What the script claims to have taken is not there, so the partition notices a gap.
                await writer.write({ONE: [outgoing(b"a"), outgoing(b"b")], TWO: [outgoing(b"c")]})
            assert conversations.partitions()[:3] == [[0, 1], [0, 1], [1]]
            assert gap.value.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

            await writer.start(clients.target, [ONE, TWO])
            conversations.asked.clear()
            conversations.refusals = [ends, ends]
            assert await writer.write({TWO: [outgoing(b"c"), outgoing(b"d")]}) == {TWO: [2, 3]}
            assert conversations.partitions() == [[1]] * 4

    TwoClusters().run(story)


def test_waiting_for_the_end_of_a_transaction_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            conversations.refusals = [{0: ErrorCode.CONCURRENT_TRANSACTIONS}] * 10_000
            began_ms = clients.clusters.simulation.now_us / 1000
            with pytest.raises(BrokerError, match="payments-0 did not take a batch") as late:
                await writer.write({ONE: [outgoing(b"a")]})
            assert late.value.error_code is ErrorCode.CONCURRENT_TRANSACTIONS
            assert 30_000 < clients.clusters.simulation.now_us / 1000 - began_ms < 31_000
            # It waits longer and longer.
            assert 100 < len(conversations.asked) < 400

    TwoClusters().run(story)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("error_code", "kind"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, PartitionRefused),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, PartitionRefused),
        (ErrorCode.POLICY_VIOLATION, PartitionRefused),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, BrokerError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, BrokerError),
    ],
)
def test_a_refusal_ends_the_transaction(
    monkeypatch: pytest.MonkeyPatch, place: int, error_code: ErrorCode, kind: type[BrokerError]
) -> None:
    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            batches = [outgoing(b"a"), outgoing(b"b")]
            if place == 0:
                conversations.refusals = [{1: error_code}]
            else:
                # The first batches are taken as if nothing were wrong.
                conversations.refusals = [{}, {1: error_code}]
            with pytest.raises(BrokerError) as refused:
                await writer.write({ONE: batches, TWO: batches})
            assert (type(refused.value), refused.value.error_code) == (kind, error_code)
            if isinstance(refused.value, PartitionRefused):
                assert refused.value.where == TWO
            assert "so says a test" in str(refused.value)
            conversations.refusals.clear()
            await writer.start(clients.target, [ONE, TWO])
            await writer.write({ONE: [outgoing(b"again")]})
        assert await values(clients.target_bootstrap, ONE) == [b"again"]
        assert await values(clients.target_bootstrap, TWO) == []

    TwoClusters().run(story)


def test_an_answer_that_leaves_out_a_partition_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(clients: Clients) -> None:
        async with overheard(clients, monkeypatch) as (writer, conversations):
            conversations.forget = 1
            with pytest.raises(RequestTimedOut, match="no entry for payments-1"):
                await writer.write({ONE: [outgoing(b"a")], TWO: [outgoing(b"b")]})

    TwoClusters().run(story)


def test_what_another_life_left_open_is_aborted_at_the_start() -> None:
    async def story(clients: Clients) -> None:
        await make_payments(clients)
        async with writer_of(clients) as (first, cluster), writer_of(clients) as (second, _):
            await first.start(clients.target, [ONE, TWO])
            await first.write({ONE: [outgoing(b"kept")]})
            first._transactions.begin()
            await first._transactions.may_send(ONE)
            node_id = (await cluster.leader(ONE)).leader
            await first._write_to(node_id, {ONE: deque(first._numbered(ONE, [outgoing(b"open")]))}, {ONE: []})
            await second.start(clients.target, [ONE, TWO])
            assert await stable_ends(clients.target) == [4, 0]
            await second.write({ONE: [outgoing(b"after")]})
            with pytest.raises(ClientError):
                await first.write({ONE: [outgoing(b"fenced")]})
        assert await values(clients.target_bootstrap, ONE) == [b"kept", b"after"]

    TwoClusters().run(story)


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_ends_where_its_marker_was_lost(commits: bool) -> None:
    async def story(clients: Clients) -> None:
        await make_payments(clients)
        async with raw_cluster(clients.target_bootstrap) as cluster:
            begin = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
            found = await ask_coordinator(cluster, ID, begin, 2)
            mine = {
                "transactional_id": ID,
                "producer_id": found.producer_id,
                "producer_epoch": found.producer_epoch,
            }
            # Nobody announces the second partition. So the coordinator writes no marker there.
            told = AddPartitionsToTxnTopic(name="payments", partitions=(0,))
            old = {f"v3_and_below_{name}": value for name, value in mine.items()}
            await ask_coordinator(
                cluster, ID, AddPartitionsToTxnRequest(**old, v3_and_below_topics=(told,)), 3
            )
            for where in (ONE, TWO):
                now_ms = clients.clusters.simulation.now_us // 1000
                raw = RawProducer(cluster, where, now_ms, found.producer_id)
                options = {"attributes": TRANSACTIONAL_BIT, "transactional_id": ID}
                assert (await raw.send(found.producer_epoch, 0, **options))[0] is ErrorCode.NONE
            await ask_coordinator(cluster, ID, EndTxnRequest(**mine, committed=commits), 3)
        await until(lambda: is_ended(clients))
        assert (await stable_ends(clients.target))[1] == 0, "it is open there"
        async with writer_of(clients) as (writer, _):
            await writer.start(clients.target, [ONE, TWO])
            assert await stable_ends(clients.target) == [2, 2]
            await writer.write({where: [outgoing(b"after")] for where in (ONE, TWO)})
        before = [b"0 0"] if commits else []
        for where in (ONE, TWO):
            assert await values(clients.target_bootstrap, where) == [*before, b"after"]

    async def is_ended(clients: Clients) -> bool:
        return (await stable_ends(clients.target))[0] == 2

    TwoClusters(settings={"transaction.partition.verification.enable": "false"}).run(story)
