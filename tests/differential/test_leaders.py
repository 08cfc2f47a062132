"""Leaders: what a broker of Ottla and one of Apache Kafka answer a follower that the test plays.

Each leads a partition with the same history. The follower asks both the same, in the same order, and what
they answer must be the same. So must what they ask the controller for in the meantime.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import product
from typing import Any

import pytest
from tests.differential.replica_twins import APACHE, CONTROLLER, OTTLA, TWINS, ReplicaTwins
from tests.support.data_plane import produce
from tests.support.mixed_cluster import wait_until
from tests.support.scripted_broker import ScriptedBroker

from ottla.model.uuid import Uuid
from ottla.records.builder import build_batch
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    ReplicaState,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

pytestmark = pytest.mark.live_oracle

FOLLOWER, EXTRAS = 11, (12, 13, 14, 15, 16, 17)
STRANGER = 18
LEADER_EPOCH = len(EXTRAS)
LAG_MS = 6000
FETCH_VERSION, LIST_OFFSETS_VERSION = 18, 10
CURRENT_EPOCHS = (-1, LEADER_EPOCH - 1, LEADER_EPOCH, LEADER_EPOCH + 1)
LAST_EPOCHS = range(-1, LEADER_EPOCH + 2)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaTwins]:
    # Only this way does the high watermark not wait for the leader's disk, as in Apache Kafka.
    settings = {"replica.lag.time.max.ms": str(LAG_MS), "ottla.acks.all.sync": "false"}
    with ReplicaTwins(tmp_path_factory.mktemp("leaders"), settings) as twins:
        yield twins


@pytest.fixture(scope="module")
def follower(twins: ReplicaTwins) -> Iterator[ScriptedBroker]:
    with twins.scripted(FOLLOWER, *EXTRAS, STRANGER) as follower:
        yield follower


@dataclass
class Led:
    """The partition that one of both leads."""

    leader: int
    topic: str
    topic_id: Uuid
    session_id: int = 0


@dataclass
class Leaders:
    """Both leaders, asked the same."""

    twins: ReplicaTwins
    follower: ScriptedBroker
    led: list[Led]

    def ask(self, make: Callable[[Led], Any], version: int, view: Callable[[Any, Led], Any]) -> Any:
        """Ask both, compare what `view` shows of the answers, and return it."""
        seen = [view(self.twins.clients[led.leader].ask(make(led), version), led) for led in self.led]
        assert seen[0] == seen[1], f"{make(self.led[0])}\nOttla: {seen[0]}\nApache Kafka: {seen[1]}"
        return seen[0]

    def produce(self, count: int = 1, size: int = 5) -> None:
        """Append batches, the same to both."""
        for _ in range(count):
            records = [(number, 1_700_000_000_000, None, b"%d" % number, ()) for number in range(size)]
            for led in self.led:
                result = produce(self.twins.clients[led.leader], led.topic, build_batch(records), acks=1)
                assert result.error_code is ErrorCode.NONE

    def fetch(self, offset: int, epoch: int, **fields: Any) -> Any:
        """Fetch as the follower, outside of a session, twice.

        The first fetch may move the high watermark, which Ottla tells at once and Apache Kafka the next time.
        """

        def make(led: Led) -> FetchRequest:
            return self.fetch_request(led, [(offset, epoch)], **fields)

        self.ask(make, FETCH_VERSION, fetched_before)
        return self.ask(make, FETCH_VERSION, fetched)

    def fetch_request(self, led: Led, wanted: list[tuple[int, int]], **fields: Any) -> FetchRequest:
        of_partition: dict[str, Any] = {
            name: fields.pop(name)
            for name in ("current_leader_epoch", "partition_max_bytes", "log_start_offset")
            if name in fields
        }
        replica_id = fields.pop("replica_id", FOLLOWER)
        epoch = fields.pop("replica_epoch", self.follower.epochs.get(replica_id, -1))
        known: dict[str, Any] = {
            "current_leader_epoch": LEADER_EPOCH,
            "partition_max_bytes": 1 << 20,
            "log_start_offset": 0,
            **of_partition,
        }
        parts = tuple(
            FetchPartition(partition=0, fetch_offset=offset, last_fetched_epoch=last_epoch, **known)
            for offset, last_epoch in wanted
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=replica_id, replica_epoch=epoch),
            max_wait_ms=0,
            min_bytes=1,
            topics=(FetchTopic(topic_id=led.topic_id, partitions=parts),) if parts else (),
        )
        return replace(request, **fields)


def fetched(answer: Any, led: Led) -> Any:
    """Return what a fetch shows, with nothing in it that says who led."""
    led.session_id = answer.session_id or led.session_id
    return (
        answer.error_code,
        answer.session_id != 0,
        [
            replace(
                part,
                records=sha256(part.records or b"").digest(),
                current_leader=_anonymous(part.current_leader, led),
            )
            for topic in answer.responses
            for part in topic.partitions
        ],
        len(answer.node_endpoints),
    )


def fetched_before(answer: Any, led: Led) -> Any:
    """Return what a fetch shows, but for offsets that it may have moved."""
    error_code, has_session, parts, endpoints = fetched(answer, led)
    return (
        error_code,
        has_session,
        [replace(part, high_watermark=0, last_stable_offset=0) for part in parts],
        endpoints,
    )


def _anonymous(leader: LeaderIdAndEpoch, led: Led) -> LeaderIdAndEpoch:
    return replace(leader, leader_id=0) if leader.leader_id == led.leader else leader


def lead(twins: ReplicaTwins, follower: ScriptedBroker, name: str) -> Leaders:
    """Let both lead a partition with offsets 0 to 29. Epoch 2 begins at 10, epoch 4 at 20, epoch 6 at 30."""
    led = []
    for leader in TWINS:
        topic = f"{name}-{leader}"
        led.append(
            Led(leader, topic, twins.create(topic, (leader, FOLLOWER, *EXTRAS), min_insync_replicas="1"))
        )
        twins.wait_for_epoch(topic, 0, (leader,))
    leaders = Leaders(twins, follower, led)
    wait_until(lambda: all(_serves(leaders, one) for one in led), "both lead")
    for gone in range(0, len(EXTRAS), 2):
        leaders.produce(2)
        for count in (gone + 1, gone + 2):
            for one in led:
                twins.remove_replicas(one.topic, (one.leader, FOLLOWER, *EXTRAS[count:]))
        for one in led:
            twins.wait_for_epoch(one.topic, gone + 2, (one.leader,))
            wait_until(partial(_serves, leaders, one, gone + 2), "it leads in the epoch")
    return leaders


def _serves(leaders: Leaders, led: Led, epoch: int = 0) -> bool:
    """Say whether a leader has begun an epoch. Asking for it as a consumer changes nothing."""
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(OffsetForLeaderTopic(topic=led.topic, partitions=(part,)),)
    )
    answer = leaders.twins.clients[led.leader].ask(request, 4)
    return bool(answer.topics[0].partitions[0].error_code is ErrorCode.NONE)


def ask_epoch_end(leaders: Leaders, version: int, replica_id: int, current: int, epoch: int) -> None:
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)

    def make(led: Led) -> OffsetForLeaderEpochRequest:
        topics = (OffsetForLeaderTopic(topic=led.topic, partitions=(part,)),)
        return OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics)

    leaders.ask(make, version, partitions_of)


def ask_offset(leaders: Leaders, replica_id: int, current: int, timestamp: int) -> None:
    part = ListOffsetsPartition(partition_index=0, current_leader_epoch=current, timestamp=timestamp)

    def make(led: Led) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=replica_id, topics=(ListOffsetsTopic(name=led.topic, partitions=(part,)),)
        )

    leaders.ask(make, LIST_OFFSETS_VERSION, partitions_of)


def partitions_of(answer: Any, _: Led) -> Any:
    return [topic.partitions for topic in answer.topics]


def epoch_ends(leaders: Leaders) -> None:
    """Ask where epochs end, as a replica, as a consumer and for debugging."""
    for version, replica_id, current, epoch in product(
        (2, 3, 4), (-2, -1, FOLLOWER, STRANGER), CURRENT_EPOCHS, LAST_EPOCHS
    ):
        ask_epoch_end(leaders, version, replica_id, current, epoch)


def listed_offsets(leaders: Leaders) -> None:
    """Ask where the log starts and ends, as a replica and as a consumer."""
    for replica_id, current, timestamp in product((-2, -1, FOLLOWER), CURRENT_EPOCHS, (-1, -2, -3, 0)):
        ask_offset(leaders, replica_id, current, timestamp)


def test_leaders_tell_where_logs_diverge(twins: ReplicaTwins, follower: ScriptedBroker) -> None:
    """KIP-101, KIP-279, KIP-595: for every last epoch, before and after the log start has moved."""
    leaders = lead(twins, follower, "diverging")
    epoch_ends(leaders)
    # The high watermark is not known to be in this epoch yet.
    listed_offsets(leaders)
    for offset, epoch in product((0, 4, 5, 10, 12, 20, 25, 30, 31, 35), LAST_EPOCHS):
        leaders.fetch(offset, epoch)
    listed_offsets(leaders)
    for current in CURRENT_EPOCHS:
        leaders.fetch(30, 4, current_leader_epoch=current)
        leaders.fetch(12, 3, current_leader_epoch=current)
    for led in leaders.led:
        part = DeleteRecordsPartition(partition_index=0, offset=15)
        topic = DeleteRecordsTopic(name=led.topic, partitions=(part,))
        client = twins.clients[led.leader]
        client.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=0))
    epoch_ends(leaders)
    listed_offsets(leaders)
    for offset, epoch in product((0, 12, 14, 15, 20, 30), LAST_EPOCHS):
        leaders.fetch(offset, epoch)


def test_leaders_know_who_may_follow(twins: ReplicaTwins, follower: ScriptedBroker) -> None:
    """A broker without a replica, one that is not registered, and one from before it registered again."""
    leaders = lead(twins, follower, "strangers")
    for replica_id in (STRANGER, EXTRAS[0], 99):
        for offset, epoch in ((0, -1), (30, 4), (30, 5), (40, 4)):
            leaders.fetch(offset, epoch, replica_id=replica_id)
            leaders.fetch(offset, epoch, replica_id=replica_id, current_leader_epoch=-1)
    for replica_epoch in (-1, follower.epochs[FOLLOWER] - 1, follower.epochs[FOLLOWER] + 1):
        leaders.fetch(10, 0, replica_epoch=replica_epoch)


def test_leaders_keep_sessions_of_followers_alike(twins: ReplicaTwins, follower: ScriptedBroker) -> None:
    """What is told again in a session, what is left out, and what ends it."""
    leaders = lead(twins, follower, "sessions")

    def make(
        led: Led, wanted: list[tuple[int, int]], epoch: int, forgets: bool = False, **fields: Any
    ) -> FetchRequest:
        forgotten = (ForgottenTopic(topic_id=led.topic_id, partitions=(0,)),) if forgets else ()
        session = {"session_id": led.session_id, "session_epoch": epoch, **fields}
        return leaders.fetch_request(led, wanted, forgotten_topics_data=forgotten, **session)

    def ask(wanted: list[tuple[int, int]], epoch: int, **fields: Any) -> Any:
        return leaders.ask(lambda led: make(led, wanted, epoch, **fields), FETCH_VERSION, fetched)

    def move(wanted: list[tuple[int, int]], epoch: int) -> None:
        """Move the high watermark. Ottla tells it at once, Apache Kafka with the next answer."""
        told = []
        for led in leaders.led:
            client = twins.clients[led.leader]
            first = client.ask(make(led, wanted, epoch), FETCH_VERSION)
            second = client.ask(make(led, [], epoch + 1), FETCH_VERSION)
            told.append([*fetched(first, led)[2], *fetched(second, led)[2]])
        assert told[0] == told[1]
        assert len(told[0]) == 1

    ask([(0, -1)], 0, partition_max_bytes=1)
    ask([], 1)
    move([(30, 4)], 2)
    ask([], 4)
    ask([(30, 4)], 5, log_start_offset=3)
    ask([(25, 5)], 6)
    ask([], 7)
    # After logs differed, Ottla tells the high watermark again and Apache Kafka does not.
    for led in leaders.led:
        again = twins.clients[led.leader].ask(make(led, [(30, 4)], 8), FETCH_VERSION)
        assert len(again.responses) == (1 if led.leader == OTTLA else 0)
    ask([], 9)
    leaders.produce()
    ask([], 10)
    move([(35, 6)], 11)
    ask([], 13, forgets=True)
    ask([], 14)
    ask([(35, 6)], 15)
    ask([], 17)
    ask([], 16)
    ask([], 17, session_id=1)
    ask([(35, 6)], 0)
    ask([], -1)
    ask([], 1)


def test_leaders_ask_for_the_same_in_sync_replicas(twins: ReplicaTwins, follower: ScriptedBroker) -> None:
    """A follower that catches up, is silent, comes back, is fenced, and comes back again."""
    leaders = lead(twins, follower, "in-sync")

    def wait_for(*in_sync: int) -> None:
        for led in leaders.led:
            twins.wait_for_in_sync(led.topic, {led.leader, *in_sync}, CONTROLLER)

    wait_for(FOLLOWER)
    leaders.fetch(30, 4)
    leaders.produce()
    # It is behind for too long.
    wait_for()
    for replica_epoch in (follower.epochs[FOLLOWER] - 1, follower.epochs[FOLLOWER] + 1):
        leaders.fetch(35, 6, replica_epoch=replica_epoch)
    leaders.fetch(25, 4)
    leaders.fetch(35, 6)
    wait_for(FOLLOWER)
    follower.set_fenced(FOLLOWER, True)
    wait_for()
    for led in leaders.led:
        twins.wait_for_in_sync(led.topic, {led.leader}, led.leader)
    leaders.fetch(35, 6)
    follower.set_fenced(FOLLOWER, False)
    for led in leaders.led:
        twins.wait_for_broker(FOLLOWER, led.leader)
    leaders.fetch(35, 6)
    wait_for(FOLLOWER)

    asked = {led.leader: proposals(twins, follower, led) for led in leaders.led}
    assert asked[OTTLA] == asked[APACHE]
    assert [len(members) for _, members, *_ in asked[OTTLA]] == [1, 2, 2]


def proposals(twins: ReplicaTwins, follower: ScriptedBroker, led: Led) -> list[Any]:
    """Return what a leader has asked the controller for, and what it was told."""
    epochs = {twins.broker_epoch(led.leader): "leader", follower.epochs[FOLLOWER]: "follower"}
    seen = []
    for one in twins.proxy.of(AlterPartitionRequest):
        for topic in one.request.topics:
            if topic.topic_id != led.topic_id:
                continue
            assert one.request.broker_id == led.leader
            assert epochs[one.request.broker_epoch] == "leader"
            (part,) = topic.partitions
            members = [
                (member.broker_id == led.leader, epochs[member.broker_epoch])
                for member in part.new_isr_with_epochs
            ]
            known = (part.leader_epoch, part.partition_epoch, part.leader_recovery_state)
            errors = [
                result.error_code
                for told in one.response.topics
                for result in told.partitions
                if told.topic_id == led.topic_id
            ]
            seen.append((one.version, members, known, errors))
    return seen
