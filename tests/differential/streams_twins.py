"""Kafka's shard and ours side by side, for streams groups.

Which of several tasks goes to which of several members that are alike is up to Kafka's hash maps. So our
coordinator gets the targets that Kafka's assignor has computed; our own assignor has tests of its own.
Everything else must be the same: when a target is computed, who makes which step, what is written.
"""

import re
from typing import Any

import pytest
from tests.differential.group_twins import METHODS, Twins
from tests.java.group_shards import GroupShards, Outcome
from tests.support.consumer_world import ChangingTopics, essence

from ottla.coordination.group.environment import Client
from ottla.coordination.group.settings import StreamsIntervals
from ottla.coordination.group.streams import target
from ottla.coordination.group.streams.answers import HeartbeatOutcome
from ottla.coordination.group.streams.assignor import Wish
from ottla.coordination.group.streams.tasks import TargetTasks, tasks_of
from ottla.wire.codec import decode
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.coordinator_records.streams_group import StreamsGroupTargetAssignmentMemberKey
from ottla.wire.declare import replace
from ottla.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from ottla.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

METHODS[StreamsGroupHeartbeatRequest] = ("streams_group_heartbeat", StreamsGroupHeartbeatResponse)


class StreamsTwins(Twins):
    """The two shards, and the third that only reads."""

    def __init__(
        self,
        shards: GroupShards,
        topics: ChangingTopics,
        intervals: StreamsIntervals,
        patch: pytest.MonkeyPatch,
    ) -> None:
        self._their_targets: dict[str, TargetTasks] = {}
        self._creatable: list[Any] = []
        patch.setattr(target, "assign_sticky", self._assign)
        configs = {
            "group.streams.assignment.interval.ms": str(intervals.assignment_interval_ms),
            "group.streams.initial.rebalance.delay.ms": str(intervals.initial_rebalance_delay_ms),
            "group.streams.num.standby.replicas": str(intervals.standby_replicas),
        }
        super().__init__(shards, topics, 0, configs)
        self.world.own_streams_intervals = intervals

    def _heed(self, theirs: Outcome) -> None:
        self._their_targets.clear()
        self._creatable = sorted(theirs.creatable, key=repr)
        for batch in theirs.batches:
            for key, value in batch:
                record = GROUP_RECORDS.decode(key, value)
                assert isinstance(record, CoordinatorRecord)
                if isinstance(record.key, StreamsGroupTargetAssignmentMemberKey) and record.value:
                    tasks = (record.value.active_tasks, record.value.standby_tasks, record.value.warmup_tasks)
                    self._their_targets[record.key.member_id] = TargetTasks(*map(tasks_of, tasks))

    def _assign(self, wishes: list[Wish], *_: Any) -> dict[str, TargetTasks]:
        return {wish.member_id: self._their_targets.get(wish.member_id, wish.before) for wish in wishes}

    def _send(self, method: str, request: Any, client: Client) -> list[Any]:
        answers = super()._send(method, request, client)
        for outcome in [answer for answer in answers if isinstance(answer, HeartbeatOutcome)]:
            ours = sorted(
                (
                    [topic.name, topic.partitions, topic.replication_factor or -1, dict(topic.configs)]
                    for topic in outcome.missing_topics.values()
                ),
                key=repr,
            )
            assert ours == [list(topic) for topic in self._creatable], self._story()
            self.creatable = list(outcome.missing_topics.values())
        # The same list: a join is answered later.
        answers[:] = map(_plain, answers)
        return answers

    def _read_answer(self, body: bytes, version: int, answer_class: type[Any]) -> Any:
        return _plain(super()._read_answer(body, version, answer_class))

    def compare_groups(self, *group_ids: str) -> None:
        """Compare how streams groups are described: by Kafka, by us, by who has read what we wrote."""
        request = StreamsGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=False)
        described = []
        for shard in (self.kafka, self.reader):
            (reply,) = shard.ask(request, 0, "").replies.values()
            described.append(decode(StreamsGroupDescribeResponse, reply, 0).groups)
        self._asked += 1
        ours: list[Any] = []
        for group_id in group_ids:
            self.world.coordinator.describe_streams_group(group_id, ours.append)
        assert essence(tuple(ours)) == essence(described[0]), self._story()
        # Who has only read the records does not know how many partitions internal topics have.
        assert [_without_topology(group) for group in described[1]] == [
            _without_topology(group) for group in described[0]
        ], self._story()


def _without_topology(group: Any) -> Any:
    return essence(replace(group, topology=None))


def _plain(answer: Any) -> Any:
    """Return an answer with the names in its statuses in an order of their own."""
    if isinstance(answer, HeartbeatOutcome):
        answer = answer.response
    if isinstance(answer, StreamsGroupHeartbeatResponse) and answer.status:
        statuses = [replace(one, status_detail=_in_order(one.status_detail)) for one in answer.status]
        return replace(answer, status=tuple(statuses))
    return answer


def _in_order(detail: str) -> str:
    # Which of several wrong topics is told, and which three of several missing ones, is up to hash maps.
    detail = re.sub(r"Existing topic .*", "Existing topic is wrong", detail)
    detail = re.sub(r"missing: .* and (\d+ additional)", r"missing: \1", detail)
    return " ".join(sorted(re.split("[, ]+", detail)))
