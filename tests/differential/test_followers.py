"""Followers: what a broker of Ottla and one of Apache Kafka ask a leader that the test plays.

The leader tells both the same, step by step. What they ask, request by request, must be the same: offsets,
epochs, sessions, and where they go on after a truncation.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.differential.replica_twins import TWINS, ReplicaTwins
from tests.support.scripted_broker import Asked, ScriptedBroker, Talk

from ottla.model.uuid import Uuid
from ottla.records.builder import build_batch
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

pytestmark = pytest.mark.live_oracle

LEADER, EXTRAS = 11, (12, 13, 14, 15, 16, 17)
LEADER_EPOCH = len(EXTRAS)
SESSION = 77
WARM_UP_PAUSE_S = 0.02
WARM_UPS_MAX = 3000


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaTwins]:
    with ReplicaTwins(tmp_path_factory.mktemp("followers"), {}) as twins:
        yield twins


@pytest.fixture(scope="module")
def leader(twins: ReplicaTwins) -> Iterator[ScriptedBroker]:
    with twins.scripted(LEADER, *EXTRAS) as leader:
        yield leader


def batch(first: int, last: int, epoch: int) -> bytes:
    """Return a batch with the offsets from `first` to `last`."""
    records = [(offset, 1_700_000_000_000, None, b"%d" % offset, ()) for offset in range(first, last + 1)]
    return bytes(build_batch(records, base_offset=first, leader_epoch=epoch))


HISTORY = b"".join(
    batch(first, first + 4, epoch) for first, epoch in ((0, 0), (5, 0), (10, 2), (15, 2), (20, 4), (25, 4))
)
"""Offsets 0 to 29, in batches of five. Epoch 2 begins at 10, epoch 4 at 20."""


@dataclass
class Leading:
    """The leader's part in the conversation with one follower."""

    talk: Talk
    topic: str
    topic_id: Uuid

    def expect_fetch(self) -> Asked:
        """Wait for the next fetch that asks for something.

        While its only partition rests, Apache Kafka sends one that only forgets it. Ottla sends none.
        """
        while True:
            asked = self.talk.expect(FetchRequest)
            if asked.request.topics or not asked.request.forgotten_topics_data:
                return asked
            asked.answer(FetchResponse(session_id=asked.request.session_id, responses=()))

    def fetch(self, **fields: Any) -> None:
        """Answer the next fetch about partition 0."""
        self.answer(self.expect_fetch(), **fields)

    def answer(self, asked: Asked, session_id: int = SESSION, **fields: Any) -> None:
        known: dict[str, Any] = {
            "partition_index": 0,
            "high_watermark": 0,
            "last_stable_offset": 0,
            "log_start_offset": 0,
            "aborted_transactions": None,
            "records": b"",
        }
        data = PartitionData(**{**known, **fields})
        topics = (FetchableTopicResponse(topic_id=self.topic_id, partitions=(data,)),)
        asked.answer(FetchResponse(session_id=session_id, responses=topics))

    def refuse(self, error_code: ErrorCode, session_id: int = 0) -> None:
        """Refuse the next fetch as a whole."""
        asked = self.expect_fetch()
        asked.answer(FetchResponse(error_code=error_code, session_id=session_id, responses=()))

    def nothing(self) -> None:
        """Answer the next fetch that there is nothing new."""
        self.expect_fetch().answer(FetchResponse(session_id=SESSION, responses=()))

    def diverge(self, epoch: int, end_offset: int, **fields: Any) -> None:
        """Answer the next fetch that the logs differ."""
        self.fetch(diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset), **fields)

    def list_offset(self, offset: int, error_code: ErrorCode = ErrorCode.NONE) -> None:
        """Answer where the log starts or ends."""
        asked = self.talk.expect(ListOffsetsRequest)
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=error_code)
        topics = (ListOffsetsTopicResponse(name=self.topic, partitions=(found,)),)
        asked.answer(ListOffsetsResponse(topics=topics))

    def warm_up(self) -> None:
        """Answer until the follower knows the last epoch. What it asked before is not compared."""
        for _ in range(WARM_UPS_MAX):
            asked = self.talk.expect(FetchRequest)
            parts = [part for topic in asked.request.topics for part in topic.partitions]
            if (
                asked.request.topics
                and asked.request.topics[0].topic_id == self.topic_id
                and asked.request.session_id == 0
                and parts[0].current_leader_epoch == LEADER_EPOCH
            ):
                self.talk.asked.clear()
                self.talk.put_back(asked)
                return
            time.sleep(WARM_UP_PAUSE_S)
            asked.answer(FetchResponse(session_id=0, responses=()))
        raise AssertionError("the follower did not hear of the last epoch")


def view(asked: Asked, broker_id: int, broker_epoch: int) -> Any:
    """Return a request without what says who sent it. That has to be right."""
    request = asked.request
    if isinstance(request, FetchRequest):
        assert request.replica_state == ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch)
        request = replace(request, replica_state=ReplicaState())
    else:
        assert request.replica_id == broker_id
        request = replace(request, replica_id=0)
    return asked.version, request


def told_in_all(requests: list[Any]) -> Iterator[Any]:
    """Yield what the leader knows of the partitions after each fetch, where the followers rest in between.

    Each fetch has to go on where the session is.
    """
    told: dict[Any, Any] = {}
    epoch = 0
    for version, request in requests:
        if not isinstance(request, FetchRequest):
            yield version, request
            continue
        if request.session_epoch == 0:
            told.clear()
        else:
            assert request.session_epoch == epoch + 1
        epoch = request.session_epoch
        told.update(
            {(one.topic_id, part.partition): part for one in request.topics for part in one.partitions}
        )
        for one in request.forgotten_topics_data:
            for number in one.partitions:
                del told[one.topic_id, number]
        if told:
            rest = replace(request, session_epoch=min(epoch, 1), topics=(), forgotten_topics_data=())
            yield version, rest, dict(told)


Script = Callable[[Leading], None]


def play(
    twins: ReplicaTwins, leader: ScriptedBroker, topic: str, script: Script, *, rests: bool = False
) -> None:
    """Play a script with both followers. Both have to ask the same."""
    topic_id = twins.create(topic, (LEADER, *TWINS, *EXTRAS))
    for count in range(1, len(EXTRAS) + 1):
        twins.remove_replicas(topic, (LEADER, *TWINS, *EXTRAS[count:]))
    seen = {}
    try:
        for broker_id in TWINS:
            leading = Leading(leader.of(broker_id), topic, topic_id)
            leading.warm_up()
            script(leading)
            # What they ask in the end shows what they have made of the last answer.
            leading.expect_fetch()
            epoch = twins.broker_epoch(broker_id)
            requests = [view(one, broker_id, epoch) for one in leading.talk.asked]
            seen[broker_id] = list(told_in_all(requests)) if rests else requests
    finally:
        twins.delete(topic)
        leader.hang_up()
    assert seen[TWINS[0]] == seen[TWINS[1]]


def plain(leading: Leading) -> None:
    """Records, a high watermark that moves, a log start that moves, and nothing."""
    leading.fetch()
    leading.fetch(records=HISTORY)
    leading.fetch(high_watermark=20)
    leading.nothing()
    leading.nothing()
    leading.fetch(high_watermark=30, log_start_offset=12)
    leading.nothing()
    leading.fetch(records=batch(30, 33, LEADER_EPOCH), high_watermark=30, log_start_offset=12)


def ended_sessions(leading: Leading) -> None:
    """A session that the leader has lost, forgets, or does not grant."""
    leading.fetch(records=HISTORY)
    leading.refuse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    leading.fetch(session_id=SESSION + 1)
    leading.refuse(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    leading.fetch(session_id=0)
    leading.fetch(session_id=SESSION)
    leading.refuse(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    leading.fetch(session_id=SESSION)


def refused(leading: Leading) -> None:
    """Errors that pass. The follower asks again, for the same."""
    leading.fetch(records=HISTORY)
    for error_code in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ):
        leading.fetch(error_code=error_code, high_watermark=-1)
    leading.fetch(high_watermark=10)


def refused_as_a_whole(leading: Leading) -> None:
    """Errors of the whole request, and connections that break."""
    leading.fetch(records=HISTORY)
    leading.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
    leading.fetch()
    leading.nothing()
    leading.expect_fetch().hang_up()
    leading.fetch()
    leading.nothing()


def damaged(leading: Leading) -> None:
    """Records that were damaged on their way are asked for again, and never passed over."""
    good = batch(0, 4, 0)
    bad = bytearray(good)
    bad[-1] ^= 1
    leading.fetch(records=bytes(bad), high_watermark=5)
    leading.fetch(records=good)
    worse = bytearray(batch(5, 9, 0))
    worse[-1] ^= 1
    leading.fetch(records=bytes(worse))
    leading.fetch(records=batch(5, 9, 0) + batch(10, 14, 0)[:-3])


def of_later_epochs(leading: Leading) -> None:
    """Batches of an epoch that the follower has not heard of are left for later (KAFKA-18723)."""
    leading.fetch(records=batch(0, 4, LEADER_EPOCH) + batch(5, 9, LEADER_EPOCH + 1))
    leading.fetch(records=batch(5, 9, LEADER_EPOCH + 1))
    leading.fetch(records=batch(5, 9, LEADER_EPOCH))


def out_of_range_at_the_end(leading: Leading) -> None:
    """The leader's log ends before that of the follower."""
    leading.fetch(records=HISTORY)
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(15)
    leading.fetch(records=batch(15, 19, LEADER_EPOCH))


def out_of_range_at_the_start(leading: Leading) -> None:
    """The leader's log starts after the end of the follower's."""
    leading.fetch(records=HISTORY)
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(100)
    leading.list_offset(50)
    leading.fetch(records=batch(50, 54, LEADER_EPOCH), log_start_offset=50, high_watermark=55)


def out_of_range_for_a_moment(leading: Leading) -> None:
    """The leader's log has what the follower wants after all, or cannot tell."""
    leading.fetch(records=HISTORY)
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(40)
    leading.list_offset(0)
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(40)
    leading.list_offset(-1, ErrorCode.UNKNOWN_LEADER_EPOCH)
    leading.fetch(high_watermark=30)


def within_the_first_batch(leading: Leading) -> None:
    """The leader's log starts within a batch, which is copied whole (KAFKA-6975)."""
    leading.fetch(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leading.list_offset(20)
    leading.list_offset(7)
    leading.fetch(records=batch(5, 9, 0), log_start_offset=7, high_watermark=10)
    leading.fetch(records=batch(10, 14, 0), log_start_offset=7, high_watermark=10)


SCRIPTS: list[Script] = [
    plain,
    ended_sessions,
    refused_as_a_whole,
    of_later_epochs,
    out_of_range_at_the_end,
    out_of_range_at_the_start,
    within_the_first_batch,
]
SCRIPTS_WITH_RESTS: list[Script] = [refused, damaged, out_of_range_for_a_moment]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_followers_ask_the_same(twins: ReplicaTwins, leader: ScriptedBroker, script: Script) -> None:
    play(twins, leader, f"follow-{script.__name__}", script)


@pytest.mark.parametrize("script", SCRIPTS_WITH_RESTS, ids=lambda one: one.__name__)
def test_followers_that_rest_ask_the_same_again(
    twins: ReplicaTwins, leader: ScriptedBroker, script: Script
) -> None:
    play(twins, leader, f"rest-{script.__name__}", script, rests=True)


Divergence = tuple[int, int]
DIVERGENCES: dict[str, list[Divergence]] = {
    "the last epoch ends earlier": [(4, 25)],
    "the last epoch has nothing": [(4, 20)],
    "the last epoch ends later": [(4, 35)],
    "the epoch before the last": [(2, 20)],
    "the epoch before the last ends earlier": [(2, 15)],
    # KIP-279: neither of the two knows the epoch of the other.
    "an epoch that the follower does not know": [(3, 22)],
    "an epoch that the follower does not know, ending early": [(3, 5), (2, 5), (0, 5)],
    "epoch by epoch": [(3, 30), (1, 15), (0, 5)],
    "an epoch before all": [(0, 0)],
    "the first epoch ends later": [(0, 15)],
    "an epoch after all": [(5, 30), (5, 10)],
    "no epoch": [(-1, 10)],
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_followers_cut_their_logs_at_the_same_place(
    twins: ReplicaTwins, leader: ScriptedBroker, name: str
) -> None:
    """KIP-101, KIP-279, KIP-595. Records and offsets in such an answer are not used (KAFKA-14704)."""

    def script(leading: Leading) -> None:
        leading.fetch(records=HISTORY)
        leading.fetch(high_watermark=0)
        for epoch, end_offset in DIVERGENCES[name]:
            leading.diverge(epoch, end_offset, records=batch(30, 34, LEADER_EPOCH), high_watermark=30)
        leading.nothing()

    play(twins, leader, "diverge-" + name.replace(" ", "-").replace(",", ""), script)
