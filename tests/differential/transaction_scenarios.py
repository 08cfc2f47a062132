"""What producers do with transactions, well-behaved or not: each scenario tells what it was answered.

Ids are told as how they compare with those before, because brokers count differently.
"""

import time
from collections.abc import Callable
from typing import Any

from tests.support.transaction_talk import TransactionTalk

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
    ProducerState,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

Told = list[Any]
Scenario = Callable[[TransactionTalk], Told]


def commit_and_abort(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch]
    for number in range(4):
        told.append(talk.write("a", b"%d" % number))
        told.append(talk.write("b", b"%d" % number))
        told.append((talk.end(number % 2 == 0).error_code, talk.producer_epoch))
    wait_until_stable(talk, "a")
    wait_until_stable(talk, "b")
    told += [talk.committed_values("a"), talk.committed_values("b")]
    return told


def announced_partitions(talk: TransactionTalk) -> Told:
    talk.version = 1
    told: Told = [talk.init().producer_epoch, talk.write("a", b"x")]
    told += [talk.add("a"), talk.add("a"), talk.write("a", b"y"), talk.add("nothing"), talk.add("a", 9)]
    told += [talk.end(True).error_code, talk.end(True).error_code, talk.end(False).error_code]
    wait_until_stable(talk, "a")
    told.append(talk.committed_values("a"))
    return told


def delayed_end(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch, talk.write("a", b"first")]
    late = talk.twin()
    told.append(talk.end(False).error_code)
    told += [talk.write("a", b"second"), late.end(True, takes=False).error_code]
    told.append(late.end(False, takes=False).error_code)
    told += [talk.end(False).error_code, late.end(True, takes=False).error_code]
    wait_until_stable(talk, "a")
    told.append(talk.committed_values("a"))
    return told


def lost_answer_of_an_end(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch, talk.write("a", b"x")]
    first = talk.end(True, takes=False)
    second = talk.end(True, takes=False)
    told += [first.error_code, second.error_code, second.producer_epoch == first.producer_epoch]
    told.append(talk.end(False, takes=False).error_code)
    talk.end(True)
    told += [talk.end(True, takes=False).error_code, talk.end(False).error_code, talk.producer_epoch]
    return told


def end_of_nothing(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch]
    told += [talk.end(True).error_code, talk.end(True, version=4).error_code]
    told += [talk.end(False, version=4).error_code, talk.end(False).error_code, talk.producer_epoch]
    return told


def hijacked_id(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch, talk.write("a", b"mine")]
    thief = TransactionTalk(talk.client, talk.transactional_id, talk.topics, prefix=talk.prefix)
    told += [thief.init().error_code, thief.producer_id == talk.producer_id, thief.producer_epoch]
    told += [talk.write("a", b"more"), talk.write("b", b"more"), talk.end(True).error_code]
    told += [talk.commit_offset("some-group", "a", 5)]
    told += [thief.write("a", b"theirs"), thief.end(True).error_code]
    wait_until_stable(talk, "a")
    told.append(talk.committed_values("a"))
    told.append(talk.init(expected=(talk.producer_id, talk.producer_epoch)).error_code)
    for version in (3, 4):
        told.append(talk.init(expected=(talk.producer_id, 0), version=version).error_code)
    return told


def recovery_after_an_error(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch]
    before = (talk.producer_id, talk.producer_epoch)
    told += [talk.init(expected=before).error_code, talk.producer_epoch]
    told += [talk.init(expected=before).error_code, talk.producer_epoch]
    told += [talk.init(expected=(talk.producer_id + 7_000_000, 0)).error_code]
    told += [talk.init(expected=(-1, 3)).error_code, talk.init(expected=(3, -1)).error_code]
    return told


def timeouts(talk: TransactionTalk) -> Told:
    told: Told = [talk.init(timeout_ms=0).error_code, talk.init(timeout_ms=900_001).error_code]
    told += [talk.init(timeout_ms=-1).error_code, talk.init(timeout_ms=900_000).error_code]
    return told


def wrong_ids(talk: TransactionTalk) -> Told:
    talk.init()
    stranger = talk.twin()
    stranger.producer_id += 7_000_000
    told: Told = [stranger.write("a", b"x"), stranger.end(True).error_code, stranger.add("a")]
    for version in range(4):
        old = talk.twin()
        old.producer_epoch -= 1
        told.append(old.add("a", version=version))
    for version in range(5):
        old = talk.twin()
        old.producer_epoch -= 1
        told.append(
            (old.end(True, version=version).error_code, old.add_offsets("some-group", min(version, 4)))
        )
    for version in (9, 10, 11, 12, 13):
        old = talk.twin()
        old.producer_epoch -= 1
        told.append(old.write("a", b"x", version=version))
    unknown = TransactionTalk(
        talk.client, talk.transactional_id + "-unknown", talk.topics, prefix=talk.prefix
    )
    unknown.producer_id, unknown.producer_epoch = talk.producer_id, 0
    told += [unknown.write("a", b"x"), unknown.end(False).error_code, unknown.add("a")]
    nameless = TransactionTalk(talk.client, "", talk.topics, prefix=talk.prefix)
    told += [nameless.init().error_code, nameless.end(False).error_code, nameless.add("a")]
    return told


def unannounced_writes(talk: TransactionTalk) -> Told:
    talk.version = 1
    told: Told = [talk.init().producer_epoch]
    told += [talk.write("a", b"x", version=version) for version in (7, 9, 10, 11)]
    told += [talk.write("a", b"x", version=12), talk.end(False, version=5).error_code]
    return told


def offsets_in_transactions(talk: TransactionTalk) -> Told:
    told: Told = [talk.init().producer_epoch, talk.commit_offset("some-group", "a", 7)]
    told += [committed_offset(talk, "some-group", "a", stable) for stable in (True, False)]
    told.append(talk.end(True).error_code)
    told.append(until_stable(talk, "some-group", "a"))
    told += [talk.commit_offset("some-group", "a", 9), talk.end(False).error_code]
    told.append(until_stable(talk, "some-group", "a"))
    told += [talk.commit_offset("some-group", "nothing", 9), talk.commit_offset("", "a", 9)]
    told += [talk.commit_offset("some-group", "a", 9, generation_id=3, member_id="nobody")]
    talk.end(False)
    return told


def announced_offsets(talk: TransactionTalk) -> Told:
    talk.version = 1
    told: Told = [talk.init().producer_epoch]
    told += [talk.commit_offset("other-group", "a", 7, version=version) for version in (3, 4)]
    told += [talk.add_offsets("other-group"), talk.commit_offset("other-group", "a", 8)]
    told += [talk.end(True).error_code, until_stable(talk, "other-group", "a")]
    return told


def looking_at_transactions(talk: TransactionTalk) -> Told:
    talk.init(timeout_ms=54_321)
    name = talk.transactional_id
    told: Told = [described(talk, name), described(talk, name + "-unknown"), described(talk, "")]
    talk.write("a", b"x")
    talk.write("b", b"x")
    told.append(described(talk, name))
    told += [
        listed(talk, states, version=2, **filters)
        for states, filters in (
            ((), {"transactional_id_pattern": name}),
            ((), {"transactional_id_pattern": name[:-1]}),
            ((), {"transactional_id_pattern": name[:-1] + ".*"}),
            ((), {"transactional_id_pattern": "("}),
            ((), {"transactional_id_pattern": ""}),
            (("Ongoing", "Strange", "Empty"), {}),
            (("CompleteCommit",), {}),
            (("Dead", "PrepareEpochFence"), {}),
            ((), {"duration_filter": 3_600_000}),
        )
    ]
    told.append(open_transactions(talk, "a"))
    talk.end(True)
    told.append(described(talk, name)[:3])
    return told


def hanging_transaction(talk: TransactionTalk) -> Told:
    """End, by hand, what no coordinator ends."""
    talk.init()
    told: Told = [talk.init().producer_epoch, talk.write("a", b"x")]

    def mark(epoch: int, coordinator_epoch: int, version: int, marker_version: int, topic: str = "a") -> Any:
        marker = WritableTxnMarker(
            producer_id=talk.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(name=talk.prefix + topic, partition_indexes=(0,)),),
            coordinator_epoch=coordinator_epoch,
            transaction_version=marker_version,
        )
        answer = talk.client.ask(WriteTxnMarkersRequest(markers=(marker,)), version)
        return answer.markers[0].topics[0].partitions[0].error_code

    told += [mark(talk.producer_epoch, 0, 2, 2), mark(talk.producer_epoch, 0, 1, 0, "nothing")]
    told += [mark(talk.producer_epoch, 0, 1, 0), open_transactions(talk, "a")]
    told += [mark(talk.producer_epoch, 0, 1, 0), mark(talk.producer_epoch - 1, 0, 1, 0)]
    told += [mark(talk.producer_epoch, 5, 1, 0), mark(talk.producer_epoch, 4, 1, 0)]
    return told


def markers_of_nobody(talk: TransactionTalk) -> Told:
    """Ask for a marker that cannot be written, among some that can."""

    def markers(*identities: tuple[int, int], numbers: tuple[int, ...] = (0,)) -> Told:
        asked = tuple(
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=False,
                topics=(WritableTxnMarkerTopic(name=talk.prefix + "a", partition_indexes=numbers),),
                coordinator_epoch=0,
            )
            for producer_id, epoch in identities
        )
        answer = talk.client.ask(WriteTxnMarkersRequest(markers=asked), 1)
        codes = {
            one.producer_id: sorted(partition.error_code for partition in one.topics[0].partitions)
            for one in answer.markers
        }
        return [codes, known_producers(talk, "a")]

    told = markers((70_001, 0), (-1, 0), (70_002, 0))
    told += markers((70_003, 0), (70_004, -1), (70_005, 0))
    told += markers((-1, 0), numbers=(9,))
    return [*told, *markers((70_006, 0), (-1, 0), (70_007, 0), numbers=(9, 0))]


def brokers_questions(talk: TransactionTalk) -> Told:
    talk.init()

    def ask(verify_only: bool, epoch: int, topics: tuple[str, ...], version: int) -> Any:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=talk.transactional_id,
            producer_id=talk.producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=tuple(
                AddPartitionsToTxnTopic(name=talk.prefix + topic, partitions=(0,)) for topic in topics
            ),
        )
        answer = talk.client.ask(AddPartitionsToTxnRequest(transactions=(transaction,)), version)
        return [
            (topic.name, topic.results_by_partition[0].partition_error_code)
            for topic in sorted(answer.results_by_transaction[0].topic_results, key=lambda one: one.name)
        ]

    epoch = talk.producer_epoch
    told: Told = [ask(True, epoch, ("a",), 4), ask(False, epoch, ("a", "nothing"), 5)]
    told += [ask(False, epoch, ("a",), 5), ask(True, epoch, ("a", "b"), 5), ask(True, epoch - 1, ("a",), 5)]
    told += [talk.end(False).error_code, talk.producer_epoch]
    return told


SCENARIOS: tuple[Scenario, ...] = (
    commit_and_abort,
    announced_partitions,
    delayed_end,
    lost_answer_of_an_end,
    end_of_nothing,
    hijacked_id,
    recovery_after_an_error,
    timeouts,
    wrong_ids,
    unannounced_writes,
    offsets_in_transactions,
    announced_offsets,
    looking_at_transactions,
    hanging_transaction,
    markers_of_nobody,
    brokers_questions,
)


# Looking


def wait_until_stable(talk: TransactionTalk, topic: str) -> None:
    """Wait until no transaction is open in a topic."""
    for _ in range(200):
        if open_transactions(talk, topic) == [-1] * len(open_transactions(talk, topic)):
            return
        time.sleep(0.05)
    raise AssertionError("a transaction hangs")


def open_transactions(talk: TransactionTalk, topic: str) -> list[int]:
    return sorted(producer.current_txn_start_offset for producer in producers(talk, topic))


def known_producers(talk: TransactionTalk, topic: str) -> list[int]:
    return sorted(producer.producer_id for producer in producers(talk, topic))


def producers(talk: TransactionTalk, topic: str) -> tuple[ProducerState, ...]:
    ask = DescribeProducersRequest(
        topics=(DescribeProducersTopic(name=talk.prefix + topic, partition_indexes=(0,)),)
    )
    (partition,) = talk.client.ask(ask).topics[0].partitions
    found: tuple[ProducerState, ...] = partition.active_producers
    return found


def committed_offset(talk: TransactionTalk, group: str, topic: str, require_stable: bool) -> Any:
    wanted = OffsetFetchRequestTopics(name=talk.prefix + topic, partition_indexes=(0,))
    ask = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=group, topics=(wanted,)),), require_stable=require_stable
    )
    (answer,) = talk.client.ask(ask, 8).groups
    if answer.error_code is not ErrorCode.NONE:
        # A coordinator that is still loading knows of no offsets.
        return -1, answer.error_code
    (partition,) = answer.topics[0].partitions
    return partition.committed_offset, partition.error_code


def until_stable(talk: TransactionTalk, group: str, topic: str) -> Any:
    for _ in range(200):
        told = committed_offset(talk, group, topic, require_stable=True)
        if told[1] is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            return told
        time.sleep(0.05)
    raise AssertionError("the offset stays unstable")


def described(talk: TransactionTalk, name: str) -> Any:
    (state,) = talk.client.ask(DescribeTransactionsRequest(transactional_ids=(name,))).transaction_states
    topics = [(topic.topic, topic.partitions) for topic in sorted(state.topics, key=lambda one: one.topic)]
    return (
        state.error_code,
        state.transaction_timeout_ms,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_start_time_ms > 0,
        topics,
    )


def listed(talk: TransactionTalk, states: tuple[str, ...], version: int, **filters: Any) -> Any:
    ask = ListTransactionsRequest(state_filters=states, producer_id_filters=(talk.producer_id,), **filters)
    answer = talk.client.ask(ask, version)
    names = [(one.transactional_id, one.transaction_state) for one in answer.transaction_states]
    return answer.error_code, answer.unknown_state_filters, names
