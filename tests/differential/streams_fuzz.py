"""Random lives of members of streams groups, for Kafka's group coordinator and ours to live through.

Members behave well most of the time: they take over the epoch and the tasks they are told, give up what they
must, and say so. Now and then they do not: wrong epochs, tasks that do not exist, other topologies. Topics
come, grow and go, and the internal topics that the coordinator asks for are created sooner or later.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.differential.streams_twins import StreamsTwins
from tests.support.streams_topologies import counting, random_topology

from ottla.model.uuid import ZERO_UUID
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)

TOPIC_NAMES = ("apples", "pears", "plums")
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
Tasks = dict[str, tuple[int, ...]]


@dataclass
class StreamsMember:
    """A thread of an application, as its client sees it."""

    group_id: str
    member_id: str
    process_id: str
    epoch: int = 0
    endpoint_epoch: int = -1
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)


class StreamsFuzz:
    """One random life."""

    def __init__(self, seed: int, twins: StreamsTwins, *, with_endpoints: bool = False) -> None:
        self.rng = random.Random(seed)
        self.twins = twins
        self.members: list[StreamsMember] = []
        self._groups = ["g", "h"]
        self._topologies = {
            group_id: counting(group_id, self.rng.choice(TOPIC_NAMES))
            if with_endpoints
            else random_topology(self.rng, group_id, TOPIC_NAMES)
            for group_id in self._groups
        }
        self._made = 0
        self._with_endpoints = with_endpoints
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (8, self.join),
            (50, self.heartbeat),
            (3, self.odd_heartbeat),
            (3, self.rejoin),
            (4, self.leave),
            (12, self.pass_time),
            (10, self.create_internal_topics),
            (6, self.commit),
            (3, self.fetch),
            (2, self.join_classic),
        ]
        if not with_endpoints:
            # Kafka answers a member with an endpoint by UNKNOWN_SERVER_ERROR while topics do not fit.
            self._actions.append((4, self.change_topics))

    def run(self, steps: int) -> None:
        """Live on for some steps."""
        weights = [weight for weight, _ in self._actions]
        for _ in range(steps):
            self.twins.advance(self.rng.randint(1, 40))
            self.rng.choices(self._actions, weights)[0][1]()
            if self.rng.random() < 0.2:
                self.twins.compare_groups(*self._groups)
        self.twins.compare_groups(*self._groups)

    # Members

    def join(self) -> None:
        if len(self.members) < 10:
            self._made += 1
            process_id = f"p{self.rng.randint(1, 4)}"
            member = StreamsMember(self.rng.choice(self._groups), f"m{self._made}", process_id)
            self.members.append(member)
            self._ask(member, 0, **self._join_fields(member))

    def rejoin(self) -> None:
        if self.members:
            member = self.rng.choice(self.members)
            self._ask(member, 0, **self._join_fields(member))

    def heartbeat(self) -> None:
        if not self.members:
            return
        member = self.rng.choice(self.members)
        fields: dict[str, Any] = {}
        if self.rng.random() < 0.7:
            fields = _owned(member.active, member.standby)
        if self.rng.random() < 0.02:
            fields["rack_id"] = self.rng.choice(("r1", "r2"))
        if self.rng.random() < 0.01:
            fields["shutdown_application"] = True
        self._ask(member, member.epoch, **fields)

    def odd_heartbeat(self) -> None:
        if not self.members:
            return
        member = self.rng.choice(self.members)
        # A topology that is fitted during a heartbeat that fails stays so in Kafka's shard: its runtime,
        # which would undo it, is not here. So that is done before.
        self._ask(member, member.epoch)
        match self.rng.randint(0, 4):
            case 0:
                self._ask(member, member.epoch + 1)
            case 1:
                self._ask(member, max(member.epoch - 1, 1), **_owned(member.active, member.standby))
            case 2:
                self._ask(member, max(member.epoch, 1), **_owned({"9": (0,)}, {}))
            case 3:
                self._ask(member, max(member.epoch, 1), **_owned({"0": (0, 99)}, {}))
            case 4:
                self._ask(StreamsMember("nowhere", "nobody", "p"), 3)

    def leave(self) -> None:
        if self.members:
            member = self.rng.choice(self.members)
            self.members.remove(member)
            self._ask(member, -1, shutdown_application=self.rng.random() < 0.1)

    def _join_fields(self, member: StreamsMember) -> dict[str, Any]:
        topology = self._topologies[member.group_id]
        if self.rng.random() < 0.05 and not self._with_endpoints:
            topology = random_topology(self.rng, member.group_id, TOPIC_NAMES)
        if self.rng.random() < 0.1:
            topology = Topology(epoch=self.rng.randint(0, 3), subtopologies=topology.subtopologies)
        fields: dict[str, Any] = {
            "topology": topology,
            "rebalance_timeout_ms": self.rng.choice((2_000, 20_000)),
            "process_id": member.process_id,
            "client_tags": (KeyValue(key="zone", value="a"),) if self.rng.random() < 0.2 else (),
            **_owned({}, {}),
        }
        if self._with_endpoints:
            fields["user_endpoint"] = Endpoint(host="here", port=self.rng.randint(1, 3))
        return fields

    def _ask(self, member: StreamsMember, epoch: int, **fields: Any) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=member.group_id,
            member_id=member.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=member.endpoint_epoch,
            **fields,
        )
        answer = self.twins.ask(request, 0, "client")
        assert answer is not None
        if answer.error_code is ErrorCode.NONE:
            member.epoch = answer.member_epoch
            if self._with_endpoints and self.rng.random() < 0.8:
                member.endpoint_epoch = answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                member.active = {one.subtopology_id: one.partitions for one in answer.active_tasks}
                member.standby = {one.subtopology_id: one.partitions for one in answer.standby_tasks}
        elif (answer.error_code in FENCED or member.epoch == 0) and member in self.members:
            self.members.remove(member)

    # The world

    def pass_time(self) -> None:
        self.twins.advance(self.rng.choice((200, 1_000, 3_000, 10_000, 46_000)))
        # Members that were taken out learn of it when they are heard of.

    def change_topics(self) -> None:
        topics, name = self.twins.world.topics, self.rng.choice(TOPIC_NAMES)
        if name not in topics.facts:
            topics.create(name, self.rng.randint(1, 5))
        elif self.rng.random() < 0.3:
            topics.delete(name)
        else:
            topics.grow(name, topics.facts[name].partition_count + 1)
        self.twins.change_topics(name, has_new=True)

    def create_internal_topics(self) -> None:
        topics = self.twins.world.topics
        missing = [topic for topic in self.twins.creatable if topic.name not in topics.facts]
        if missing:
            for topic in missing:
                odd = self.rng.random() < 0.05 and not self._with_endpoints
                topics.create(topic.name, topic.partitions + odd)
            self.twins.change_topics(*(topic.name for topic in missing), has_new=True)
        elif self.rng.random() < 0.2 and not self._with_endpoints:
            internal = [name for name in topics.facts if name not in TOPIC_NAMES]
            if internal:
                name = self.rng.choice(internal)
                topics.delete(name)
                self.twins.change_topics(name, has_new=False)

    # Offsets, and the classic protocol

    def commit(self) -> None:
        if not self.members:
            return
        member = self.rng.choice(self.members)
        epoch = member.epoch - (self.rng.random() < 0.4)
        topic = self.rng.choice(list(self.twins.world.topics.facts) or ["apples"])
        partition = OffsetCommitRequestPartition(
            partition_index=self.rng.randint(0, 2),
            committed_offset=self.rng.randint(0, 99),
            committed_metadata="",
        )
        facts = self.twins.world.topics.facts.get(topic)
        request = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member.member_id,
            topics=(
                OffsetCommitRequestTopic(
                    name=topic, topic_id=facts.topic_id if facts else ZERO_UUID, partitions=(partition,)
                ),
            ),
        )
        self.twins.ask(request, 9, "client")

    def fetch(self) -> None:
        member = self.rng.choice(self.members) if self.members else StreamsMember("g", "x", "p")
        group = OffsetFetchRequestGroup(
            group_id=member.group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            topics=(OffsetFetchRequestTopics(name="apples", partition_indexes=(0, 1)),),
        )
        self.twins.fetch_offsets(OffsetFetchRequest(groups=(group,), require_stable=False), 9)

    def join_classic(self) -> None:
        """A member of the classic protocol joins and leaves: an empty streams group gives way."""
        group_id = self.rng.choice(self._groups)
        protocol = JoinGroupRequestProtocol(name="stream", metadata=b"\x00")
        member_id = ""
        for _ in range(2):
            request = JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id=member_id,
                protocol_type="stream",
                protocols=(protocol,),
            )
            answer = self.twins.ask(request, 7, "classic")
            if answer is None:
                answer = self.twins.advance(10).get(self.twins.last_asked)
            member_id = "" if answer is None else answer.member_id
        if member_id and self.rng.random() < 0.7:
            member = MemberIdentity(member_id=member_id)
            self.twins.ask(LeaveGroupRequest(group_id=group_id, members=(member,)), 3, "classic")


def _owned(active: Tasks, standby: Tasks) -> dict[str, Any]:
    return {
        "active_tasks": tuple(TaskIds(subtopology_id=one, partitions=active[one]) for one in sorted(active)),
        "standby_tasks": tuple(
            TaskIds(subtopology_id=one, partitions=standby[one]) for one in sorted(standby)
        ),
        "warmup_tasks": (),
    }
