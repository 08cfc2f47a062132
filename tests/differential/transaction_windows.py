"""What a coordinator answers at every moment of a transaction: each request, with each possible epoch.

A cell is a new transactional id that was brought to a state, and one request. A transaction is kept between
its decision and its last marker by a partition whose leader is gone: `stuck`. All others are in `healthy`.
The epoch of a request is told as its distance from the one that is known; `strange` is somebody else's
producer id. Ids in answers are told as how they compare with those before, because brokers count differently.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from tests.support.data_plane import Asks, batch_of, produce_request

from ottla.coordination.transaction.status import STATUS_BY_TITLE, TransactionStatus
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_S: Final = TransactionStatus
HEALTHY: Final = "healthy"
STUCK: Final = "stuck"
GROUP: Final = "some-group"
STRANGE_ID: Final = 7_000_000


class Id(NamedTuple):
    """A transactional id in some state, and the identity of its producer there."""

    name: str
    producer_id: int
    epoch: int

    def aged(self, epochs: int | None) -> "Id":
        """Return the identity some epochs later, or before; without a number, that of somebody else."""
        if epochs is None:
            return self._replace(producer_id=self.producer_id + STRANGE_ID)
        return self._replace(epoch=self.epoch + epochs)


Question = Callable[[Asks, Id], str]


def questions() -> Iterator[tuple[str, Question]]:
    """Name every request that a client, or a broker for it, may send at any moment."""
    for committed, outcome in ((True, "commit"), (False, "abort")):
        for version in (4, 5):
            end = partial(_end, committed=committed, version=version)
            for age in (-1, 0, 1):
                yield f"end v{version} {outcome} {age:+d}", partial(end, age=age)
            yield f"end v{version} {outcome} strange", partial(end, age=None)
    for age in (-1, 0, 1):
        yield f"add v3 {age:+d}", _of_age(age, partial(_add_v3, topic=HEALTHY))
        yield f"add v5 {age:+d}", _of_age(age, partial(_add_v5, topic=HEALTHY))
        yield f"verify {age:+d}", _of_age(age, partial(_add_v5, topic=HEALTHY, verify_only=True))
        for version in (3, 4):
            yield f"add offsets v{version} {age:+d}", _of_age(age, partial(_add_offsets, version=version))
        for version in (11, 12):
            yield f"produce v{version} {age:+d}", _of_age(age, partial(_produce, version=version))
        for version in (4, 5):
            yield (
                f"commit offsets v{version} {age:+d}",
                _of_age(age, partial(_commit_offset, version=version)),
            )
        yield f"init {age:+d}", partial(_init, age=age)
    yield "add v3 strange", _of_age(None, partial(_add_v3, topic=HEALTHY))
    yield "verify strange", _of_age(None, partial(_add_v5, topic=HEALTHY, verify_only=True))
    yield "init strange", partial(_init, age=None)
    yield "init", _init_anew


def columns() -> list[tuple[str, int, TransactionStatus]]:
    """Return every state, with the version of transactions that brought it about, and a name for both."""
    return [
        (f"v{version} {title}", version, status)
        for version in (1, 2)
        for title, status in STATUS_BY_TITLE.items()
        if status not in (_S.DEAD, _S.PREPARE_EPOCH_FENCE)
    ]


def ask_all(client: Asks, pause: Callable[[], None]) -> dict[tuple[str, str], str]:
    """Ask everything in every state. Return the answers by question and state."""
    answers: dict[tuple[str, str], str] = {}
    for state, version, status in columns():
        for name, question in questions():
            who = _bring_to(client, pause, f"{state}: {name}", version, status)
            answers[name, state] = question(client, who)
    return answers


def create_on(client: Asks, topic: str, node_id: int, pause: Callable[[], None]) -> None:
    """Create a topic with its only replica on one node, once that is there."""
    place = CreatableReplicaAssignment(partition_index=0, broker_ids=(node_id,))
    wanted = CreatableTopic(
        name=topic, num_partitions=-1, replication_factor=-1, assignments=(place,), configs=()
    )
    request = CreateTopicsRequest(topics=(wanted,), timeout_ms=30_000)
    while client.ask(request).topics[0].error_code is not ErrorCode.NONE:
        pause()


def _bring_to(
    client: Asks, pause: Callable[[], None], name: str, version: int, status: TransactionStatus
) -> Id:
    # The second time, so that there is an epoch before.
    for _ in range(2):
        while (given := _ask_init(client, name, -1, -1)).error_code is not ErrorCode.NONE:
            # Its shard is still being loaded.
            pause()
    who = Id(name, given.producer_id, given.producer_epoch)
    if status is _S.EMPTY:
        return who
    add = _add_v3 if version == 1 else _add_v5
    assert add(client, who, STUCK if status.is_ending else HEALTHY) == "NONE"
    if status is _S.ONGOING:
        return who
    ended = _ask_end(client, who, status in (_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT), 4 if version == 1 else 5)
    assert ended.error_code is ErrorCode.NONE, ended
    if version == 2:
        who = who._replace(producer_id=ended.producer_id, epoch=ended.producer_epoch)
    while (found := _status(client, name)) is not status:
        assert not found.is_idle, found
        pause()
    return who


def _status(client: Asks, name: str) -> TransactionStatus:
    (state,) = client.ask(DescribeTransactionsRequest(transactional_ids=(name,))).transaction_states
    return STATUS_BY_TITLE[state.transaction_state]


def _of_age(age: int | None, question: Question) -> Question:
    return lambda client, who: question(client, who.aged(age))


def _end(client: Asks, who: Id, *, committed: bool, version: int, age: int | None) -> str:
    answer = _ask_end(client, who.aged(age), committed, version)
    return _told(answer, who) if version >= 5 else str(answer.error_code.name)


def _ask_end(client: Asks, who: Id, committed: bool, version: int) -> Any:
    ask = EndTxnRequest(
        transactional_id=who.name,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        committed=committed,
    )
    return client.ask(ask, version)


def _told(answer: Any, who: Id) -> str:
    """Tell an answer that gives an identity to go on with."""
    if answer.error_code is not ErrorCode.NONE:
        return str(answer.error_code.name)
    if answer.producer_id != who.producer_id:
        return f"NONE, another id, epoch {answer.producer_epoch}"
    return f"NONE, epoch {answer.producer_epoch - who.epoch:+d}"


def _init(client: Asks, who: Id, *, age: int | None) -> str:
    expected = who.aged(age)
    return _told(_ask_init(client, who.name, expected.producer_id, expected.epoch), who)


def _init_anew(client: Asks, who: Id) -> str:
    return _told(_ask_init(client, who.name, -1, -1), who)


def _ask_init(client: Asks, name: str, producer_id: int, epoch: int) -> Any:
    ask = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=900_000, producer_id=producer_id, producer_epoch=epoch
    )
    return client.ask(ask, 5)


def _add_v3(client: Asks, who: Id, topic: str) -> str:
    ask = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=who.name,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(0,)),),
    )
    (told,) = client.ask(ask, 3).results_by_topic_v3_and_below
    return str(told.results_by_partition[0].partition_error_code.name)


def _add_v5(client: Asks, who: Id, topic: str, verify_only: bool = False) -> str:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=who.name,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        verify_only=verify_only,
        topics=(AddPartitionsToTxnTopic(name=topic, partitions=(0,)),),
    )
    answer = client.ask(AddPartitionsToTxnRequest(transactions=(transaction,)), 5)
    (told,) = answer.results_by_transaction[0].topic_results
    return str(told.results_by_partition[0].partition_error_code.name)


def _add_offsets(client: Asks, who: Id, version: int) -> str:
    ask = AddOffsetsToTxnRequest(
        transactional_id=who.name, producer_id=who.producer_id, producer_epoch=who.epoch, group_id=GROUP
    )
    return str(client.ask(ask, version).error_code.name)


def _produce(client: Asks, who: Id, version: int) -> str:
    batch = batch_of(
        b"x",
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = produce_request(HEALTHY, batch, transactional_id=who.name)
    return str(client.ask(request, version).responses[0].partition_responses[0].error_code.name)


def _commit_offset(client: Asks, who: Id, version: int) -> str:
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=who.name,
        group_id=GROUP,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        topics=(TxnOffsetCommitRequestTopic(name=HEALTHY, partitions=(part,)),),
    )
    return str(client.ask(request, version).topics[0].partitions[0].error_code.name)
