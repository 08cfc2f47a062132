"""Streams groups survive a change of the server on one directory: Ottla, Apache Kafka, and back.

Members go on with their epochs and tasks, and no task moves.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.differential.group_talks import RETRIABLE, Talk
from tests.java.apache_kafka import ApacheKafka
from tests.java.complaints import ERRORS, complaints
from tests.support.consumer_world import essence
from tests.support.group_requests import TOPIC
from tests.support.ottla_node import OttlaNode
from tests.support.streams_topologies import counting

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

PROPERTIES = {
    "node.id": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "default.replication.factor": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
    # No member's session ends while servers are changed.
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
}
GROUPS = ("app", "empty", "newer")
_NONE: dict[str, Any] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}


class Member:
    """A thread of an application."""

    def __init__(self, group: str, name: str) -> None:
        self.group = group
        self.name = name
        self.epoch = 0
        self.tasks = dict(_NONE)

    def beat(self, talk: Talk, epoch: int | None = None, **fields: Any) -> Any:
        ask = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch if epoch is None else epoch,
            endpoint_information_epoch=-1,
            **{**self.tasks, **fields},
        )
        while (answer := talk.client().ask(ask)).error_code in RETRIABLE:
            pass
        assert answer.error_code is ErrorCode.NONE, answer
        if answer.active_tasks is not None:
            self.tasks = {name: getattr(answer, name) for name in _NONE}
        self.epoch = answer.member_epoch
        return answer

    def join(self, talk: Talk) -> Any:
        return self.beat(
            talk,
            0,
            rebalance_timeout_ms=600_000,
            topology=counting(self.group, TOPIC),
            process_id=f"process of {self.name}",
            client_tags=(),
        )


def settle(talk: Talk, *members: Member) -> None:
    """Let members go on until all of them have their tasks and nothing is missing."""
    while True:
        answers = [member.beat(talk) for member in members]
        if not any(answer.status or answer.active_tasks for answer in answers):
            return


def view(talk: Talk) -> Any:
    """Return all that clients can see of the groups, as soon as they are loaded."""
    ask = StreamsGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False)
    groups = talk.client().ask(ask).groups
    while any(group.error_code in RETRIABLE for group in groups):
        groups = talk.client().ask(ask).groups
    return essence(groups)


def without_topology(seen: Any) -> Any:
    """A server that has just loaded the records shows the topology as it was sent."""
    return [{name: value for name, value in group.items() if name != "topology"} for group in seen]


@pytest.mark.thorough(guard="tests/golden/test_internal_records.py")
def test_streams_groups_go_from_ottla_to_apache_kafka_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    a, b, alone = Member("app", "a"), Member("app", "b"), Member("empty", "a")
    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        talk.prepare()
        a.join(talk)
        b.join(talk)
        settle(talk, a, b)
        alone.join(talk)
        settle(talk, alone)
        alone.beat(talk, -1)
        seen = view(talk)
        talk.close()

    with ApacheKafka(tmp_path / "kafka", PROPERTIES, data_directory=data) as kafka:
        talk = Talk(kafka.bootstrap)
        assert without_topology(view(talk)) == without_topology(seen)
        for member in (a, b):
            assert member.beat(talk).active_tasks is None, "nothing moves"
        newer = Member("newer", "n")
        newer.join(talk)
        settle(talk, newer)
        seen = view(talk)
        talk.close()
        assert complaints(kafka.read_log(), ERRORS) == []

    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        assert without_topology(view(talk)) == without_topology(seen)
        for member in (a, b, newer):
            assert member.beat(talk).active_tasks is None, "nothing moves"
        b.beat(talk, -1)
        settle(talk, a)
        assert sum(len(one.partitions) for one in a.tasks["active_tasks"]) == 2 * 3
        alone.tasks = dict(_NONE)
        alone.join(talk)
        settle(talk, alone)
        talk.close()
