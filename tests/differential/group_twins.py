"""A shard of Apache Kafka's group coordinator and one of ours, asked the same things at the same times.

After every step the answers must be the same, and so must the records: the same kinds in the same order, and
the same contents. What we write is also replayed by a second shard of Kafka's, which must be able to load it.
"""

from collections import Counter
from typing import Any

from tests.java.group_shards import GroupShards, KafkaShard, Outcome, Written
from tests.support.consumer_world import ChangingTopics, ConsumerWorld, essence
from tests.support.group_world import START_MS

from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.wire.codec import decode, encode
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.coordinator_records.classic_group import GroupMetadataValue
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

METHODS: dict[type[Any], tuple[str, type[Any]]] = {
    ConsumerGroupHeartbeatRequest: ("consumer_group_heartbeat", ConsumerGroupHeartbeatResponse),
    ShareGroupHeartbeatRequest: ("share_group_heartbeat", ShareGroupHeartbeatResponse),
    JoinGroupRequest: ("join_group", JoinGroupResponse),
    SyncGroupRequest: ("sync_group", SyncGroupResponse),
    HeartbeatRequest: ("heartbeat", HeartbeatResponse),
    LeaveGroupRequest: ("leave_group", LeaveGroupResponse),
    OffsetCommitRequest: ("commit_offsets", OffsetCommitResponse),
}
CONFIGS = {
    "group.consumer.assignors": "range",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "offsets.retention.check.interval.ms": "9000000000000",
}


class Twins:
    """The two shards, and the third that only reads."""

    def __init__(
        self,
        shards: GroupShards,
        topics: ChangingTopics,
        assignment_interval_ms: int,
        more_configs: dict[str, str] | None = None,
    ) -> None:
        configs = {
            **CONFIGS,
            "group.consumer.assignment.interval.ms": str(assignment_interval_ms),
            **(more_configs or {}),
        }
        self.kafka = shards.shard("kafka", START_MS, configs)
        self.reader = shards.shard("reader", START_MS, configs)
        self._suffix = ""
        self.world = ConsumerWorld(
            GroupSettings(
                initial_rebalance_delay_ms=0,
                consumer_assignors=("range",),
                min_session_timeout_ms=1,
                offsets_retention_check_interval_ms=9_000_000_000_000,
            ),
            topics,
            suffix=lambda: self._suffix,
        )
        self.world.intervals = ConsumerIntervals(assignment_interval_ms=assignment_interval_ms)
        self._asked = 0
        self.creatable: list[Any] = []
        """Topics that both coordinators want to have created."""
        self._waiting: dict[int, tuple[int, type[Any], list[Any]]] = {}
        self._theirs_early: dict[int, bytes] = {}
        self._read_batches = 0
        self.steps: list[str] = []
        for shard in (self.kafka, self.reader):
            self._tell_topics(shard)
            shard.load()

    # Steps

    def ask(self, request: Any, version: int, client_id: str) -> Any:
        """Ask both. Return the answer, or None when both still wait."""
        number, self._asked = self._asked, self._asked + 1
        self.steps.append(f"{number}: v{version} {request}")
        theirs = self.kafka.ask(request, version, client_id)
        self._heed(theirs)
        method, answer_class = METHODS[type(request)]
        if isinstance(request, JoinGroupRequest) and number in theirs.replies:
            made_up = decode(JoinGroupResponse, theirs.replies[number], version).member_id
            self._suffix = made_up.removeprefix(f"{request.group_instance_id or client_id}-")
        answers = self._send(method, request, Client(client_id, "/127.0.0.1", version))
        self._waiting[number] = (version, answer_class, answers)
        compared = self._compare(theirs)
        return compared.get(number)

    @property
    def last_asked(self) -> int:
        """The number of the last request."""
        return self._asked - 1

    def advance(self, by_ms: int) -> dict[int, Any]:
        """Let time pass for both, at once. Return what was answered, by the numbers of the requests."""
        self.steps.append(f"advance by {by_ms} ms")
        # What is due without delay is done before time goes on.
        self.world.settle()
        self.world.clock.advance(by_ms)
        now_ms = self.world.clock.now_ms()
        theirs = self.kafka.advance(now_ms)
        self._heed(theirs)
        self.reader.advance(now_ms)
        self.world.settle()
        return self._compare(theirs)

    def change_topics(self, *names: str, has_new: bool) -> None:
        """Tell both what has become of topics."""
        self.steps.append(f"topics: {list(self.world.topics.facts.values())}")
        self._tell_topics(self.kafka)
        self._tell_topics(self.reader)
        self.world.coordinator.topics_changed(names, has_new)

    def compare_groups(self, *group_ids: str) -> None:
        """Compare how consumer groups are described: by Kafka, by us, by who has read what we wrote."""
        request = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=False)
        described = []
        for shard in (self.kafka, self.reader):
            (reply,) = shard.ask(request, 1, "").replies.values()
            described.append(essence(decode(ConsumerGroupDescribeResponse, reply, 1).groups))
        self._asked += 1
        ours: list[Any] = []
        for group_id in group_ids:
            self.world.coordinator.describe_consumer_group(group_id, ours.append)
        assert essence(tuple(ours)) == described[0], self._story()
        assert described[1] == described[0], self._story()

    def fetch_offsets(self, request: OffsetFetchRequest, version: int) -> None:
        """Compare committed offsets."""
        self.steps.append(f"{self._asked}: v{version} {request}")
        theirs = self.kafka.ask(request, version, "")
        answers: list[Any] = []
        self.world.coordinator.fetch_offsets(request.groups[0], False, answers.append)
        answer = OffsetFetchResponse(groups=tuple(answers))
        expected = decode(OffsetFetchResponse, theirs.replies[self._asked], version)
        self._asked += 1
        assert essence(answer.groups) == essence(expected.groups), self._story()

    # Comparing

    def _heed(self, theirs: Outcome) -> None:
        """See what Kafka has decided before we are asked."""

    def _send(self, method: str, request: Any, client: Client) -> list[Any]:
        answers: list[Any] = []
        now_ms = self.world.clock.now_ms()
        getattr(self.world.coordinator, method)(request, client, now_ms, answers.append)
        self.world.sync()
        return answers

    def _compare(self, theirs: Outcome) -> dict[int, Any]:
        ours = self._new_batches()
        self.reader.replay([record for batch in ours for record in batch])
        of_kafka = [_described(batch) for batch in theirs.batches]
        of_ours = [_described(batch) for batch in ours]
        assert of_ours == of_kafka, self._story()
        answered = {
            number: self._read_answer(encode(answers[0], version), version, answer_class)
            for number, (version, answer_class, answers) in self._waiting.items()
            if answers
        }
        expected = {
            number: self._read_answer(body, *self._waiting[number][:2])
            for number, body in theirs.replies.items()
        }
        assert essence_of_all(answered) == essence_of_all(expected), self._story()
        for number in answered:
            del self._waiting[number]
        return answered

    def _read_answer(self, body: bytes, version: int, answer_class: type[Any]) -> Any:
        return _read(body, version, answer_class)

    def _new_batches(self) -> list[list[Written]]:
        stored = self.world.logs[0].stored
        new = [batch.encoded for batch in stored[self._read_batches :]]
        self._read_batches = len(stored)
        return new

    def _tell_topics(self, shard: KafkaShard) -> None:
        topics = self.world.topics
        shard.use_topics(
            [
                (facts.name, facts.topic_id, facts.partition_count, topics.racks(facts.topic_id))
                for facts in topics.facts.values()
            ],
            topics.version(),
        )

    def _story(self) -> str:
        return "after these steps:\n" + "\n".join(self.steps)


def essence_of_all(answers: dict[int, Any]) -> dict[int, Any]:
    return {number: essence(answer) for number, answer in answers.items()}


def _read(body: bytes, version: int, answer_class: type[Any]) -> Any:
    answer = decode(answer_class, body, version)
    if isinstance(answer, JoinGroupResponse):
        # The broker makes one of the other when it sends the answer.
        return replace(answer, protocol_name=answer.protocol_name or None)
    if isinstance(answer, SyncGroupResponse):
        return replace(answer, assignment=_opened(answer.assignment))
    return answer


def _opened(blob: bytes) -> Any:
    """Open a classic member's assignment: its topics come from a hash map."""
    if not blob:
        return blob
    version = int.from_bytes(blob[:2])
    return (version, decode(ConsumerProtocolAssignment, blob[2:], version))


def _described(batch: list[Written]) -> tuple[list[str], Counter[str]]:
    """Return the kinds of records in their order, and their contents in any: Kafka's come from hash maps."""
    kinds, contents = [], []
    for key, value in batch:
        record = GROUP_RECORDS.decode(key, value)
        assert isinstance(record, CoordinatorRecord)
        told = record.value
        if isinstance(told, GroupMetadataValue):
            # Which member leads a group that was converted is up to a hash map too.
            members = [replace(member, assignment=_opened(member.assignment)) for member in told.members]
            told = replace(told, leader=None, members=tuple(members))
        kinds.append(f"{type(record.key).__name__}{' tombstone' if told is None else ''}")
        contents.append(repr((essence(record.key), essence(told), record.value_version)))
    return kinds, Counter(contents)
