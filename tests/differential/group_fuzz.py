"""Random lives of members, for Kafka's group coordinator and ours to live through side by side.

Members behave well most of the time: they take over the epoch and the assignment they are told, give up what
they must, and say so. Now and then they do not: wrong epochs, ids of others, groups that do not exist.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.group_twins import Twins

from ottla.model.uuid import Uuid
from ottla.wire.codec import encode
from ottla.wire.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedTopicPartitions,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
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
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC_NAMES = ("apples", "pears", "plums", "grapes")
REGEXES = ("ap.*", "p.*", "(pears|plums)", "gr[a-z]+", ".*", "none", "p(", "(?=p)")
FENCED = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)


@dataclass
class ConsumerMember:
    """A member of the new protocol, as its client sees it."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    epoch: int = 0
    owned: dict[Uuid, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class ClassicMember:
    """A member of the classic protocol, as its client sees it."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    session_timeout_ms: int
    generation: int = -1
    owned: dict[str, tuple[int, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()


class Fuzz:
    """One random life."""

    def __init__(
        self,
        seed: int,
        twins: Twins,
        *,
        with_classic: bool = False,
        with_regex: bool = False,
        names_min: int = 0,
    ) -> None:
        self.rng = random.Random(seed)
        self.twins = twins
        self.members: list[ConsumerMember] = []
        self.classic: list[ClassicMember] = []
        self._parked: dict[int, ClassicMember] = {}
        self._groups = ["g", "h"]
        self._made = 0
        self._with_regex = with_regex
        self._names_min = names_min
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (6, self.join),
            (40, self.heartbeat),
            (3, self.odd_heartbeat),
            (3, self.rejoin),
            (4, self.change_subscription),
            (4, self.leave),
            (3, self.come_back),
            (12, self.pass_time),
            (3, self.change_topics),
            (6, self.commit),
            (3, self.fetch),
        ]
        if with_classic:
            self._actions += [
                (6, self.join_classic),
                (10, self.rejoin_classic),
                (14, self.heartbeat_classic),
                (3, self.leave_classic),
            ]

    def run(self, steps: int) -> None:
        """Live on for some steps."""
        weights = [weight for weight, _ in self._actions]
        for _ in range(steps):
            self._advance(self.rng.randint(1, 40))
            self.rng.choices(self._actions, weights)[0][1]()
            if self.rng.random() < 0.2:
                self.twins.compare_groups(*self._groups)
            self._leave_downgraded_groups()
        self.twins.compare_groups(*self._groups)

    # The new protocol

    def join(self) -> None:
        if len(self.members) < 12:
            instance_id = f"i{self.rng.randint(1, 4)}" if self.rng.random() < 0.35 else None
            member = ConsumerMember(self._group(), self._new_id("m"), instance_id, self._client())
            self.members.append(member)
            self._ask(member, 0, **self._join_fields())

    def heartbeat(self) -> None:
        if member := self._some(self.members):
            if self.rng.random() < 0.5:
                self._ask(member, member.epoch, topic_partitions=_owned(member))
            else:
                self._ask(member, member.epoch)

    def odd_heartbeat(self) -> None:
        if member := self._some(self.members):
            epoch = max(member.epoch + self.rng.choice((-2, -1, 1, 7)), 1)
            owned = self.rng.choice((None, (), _owned(member)))
            self._ask(member, epoch, topic_partitions=owned)

    def rejoin(self) -> None:
        if member := self._some(self.members):
            self._ask(member, 0, **self._join_fields())

    def change_subscription(self) -> None:
        if member := self._some(self.members):
            changes = self._subscription()
            if self.rng.random() < 0.3:
                changes["topic_partitions"] = _owned(member)
            self._ask(member, member.epoch, **changes)

    def leave(self) -> None:
        if member := self._some(self.members):
            epoch = -2 if member.instance_id is not None and self.rng.random() < 0.6 else -1
            self._ask(member, epoch)
            if epoch == -1:
                self._forget(member)

    def come_back(self) -> None:
        """A static member is back under another id."""
        static = [member for member in self.members if member.instance_id is not None]
        if member := self._some(static):
            member.member_id = self._new_id("m")
            member.epoch, member.owned = 0, {}
            self._ask(member, 0, **self._join_fields())

    # The classic protocol

    def join_classic(self) -> None:
        if len(self.classic) < 6:
            group_id = self._group()
            group = self.twins.world.shard.state.find_classic(group_id)
            if group is not None and (group.members or group.pending_members):
                return
            # A group that is classic answers a static member late, and has made up its id long before.
            may_be_static = self._has_members(group_id) and self.rng.random() < 0.4
            instance_id = f"i{self.rng.randint(1, 4)}" if may_be_static else None
            self._made += 1
            member = ClassicMember(group_id, "", instance_id, self._client(), 30_000 + self._made)
            member.topics = self._names() or ("apples",)
            answer = self._join(member)
            if answer is not None and answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
                member.member_id = answer.member_id
                answer = self._join(member)
            if answer is None:
                self._parked[self.twins.last_asked] = member
            elif answer.error_code is ErrorCode.NONE:
                self.classic.append(member)
                self._joined(member, answer)

    def rejoin_classic(self) -> None:
        if member := self._some(self.classic):
            if self.rng.random() < 0.2:
                member.topics = self._names() or ("apples",)
            if not self._has_members(member.group_id):
                self._forget_classic(member)
                return
            answer = self._join(member)
            if answer is None or answer.error_code is not ErrorCode.NONE:
                self._forget_classic(member)
            else:
                self._joined(member, answer)

    def heartbeat_classic(self) -> None:
        if member := self._some(self.classic):
            generation = member.generation + (self.rng.random() < 0.1)
            ask = HeartbeatRequest(
                group_id=member.group_id,
                generation_id=generation,
                member_id=member.member_id,
                group_instance_id=member.instance_id,
            )
            answer = self.twins.ask(ask, 4, member.client_id)
            shall_join = answer is not None and answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS
            if shall_join and self._has_members(member.group_id) and self.rng.random() < 0.8:
                answer = self._join(member)
                if answer is not None and answer.error_code is ErrorCode.NONE:
                    self._joined(member, answer)

    def leave_classic(self) -> None:
        if member := self._some(self.classic):
            who = MemberIdentity(
                member_id=member.member_id,
                group_instance_id=member.instance_id if self.rng.random() < 0.7 else None,
            )
            ask = LeaveGroupRequest(group_id=member.group_id, members=(who,))
            self.twins.ask(ask, 5, member.client_id)
            self._forget_classic(member)

    def _join(self, member: ClassicMember) -> Any:
        blob = b"\x00\x03" + encode(
            ConsumerProtocolSubscription(
                topics=member.topics,
                owned_partitions=tuple(
                    OwnedTopicPartitions(topic=topic, partitions=numbers)
                    for topic, numbers in member.owned.items()
                ),
                generation_id=member.generation,
            ),
            3,
        )
        protocols = tuple(
            JoinGroupRequestProtocol(name=name, metadata=blob) for name in ("range", "cooperative-sticky")
        )
        ask = JoinGroupRequest(
            group_id=member.group_id,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=20_000 + self._made,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocols=protocols,
            reason="fuzz",
        )
        return self.twins.ask(ask, 9, member.client_id)

    def _joined(self, member: ClassicMember, answer: Any) -> None:
        member.member_id, member.generation = answer.member_id, answer.generation_id
        if self.rng.random() < 0.1:
            return
        ask = SyncGroupRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocol_name=answer.protocol_name,
            assignments=() if answer.leader != member.member_id else (self._assignment(member),),
        )
        synced = self.twins.ask(ask, 5, member.client_id)
        if synced is not None and synced.error_code is ErrorCode.NONE and synced.assignment:
            _, assignment = synced.assignment
            member.owned = {item.topic: item.partitions for item in assignment.assigned_partitions}

    def _assignment(self, member: ClassicMember) -> SyncGroupRequestAssignment:
        """Let the leader, who is alone, assign everything to itself."""
        known = self.twins.world.topics.facts
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=tuple(
                AssignedTopicPartitions(topic=name, partitions=tuple(range(known[name].partition_count)))
                for name in member.topics
                if name in known
            ),
            user_data=b"mine" if self.rng.random() < 0.05 else None,
        )
        blob = b"\x00\x03" + encode(assignment, 3)
        return SyncGroupRequestAssignment(member_id=member.member_id, assignment=blob)

    # Around them

    def pass_time(self) -> None:
        self._advance(self.rng.choice((100, 900, 1_100, 5_000, 11_000, 25_000, 46_000, 70_000)))

    def change_topics(self) -> None:
        topics = self.twins.world.topics
        name = self.rng.choice(TOPIC_NAMES)
        is_new = name not in topics.facts
        if is_new:
            topics.create(name, self.rng.randint(1, 5))
        elif self.rng.random() < 0.6:
            topics.grow(name, topics.facts[name].partition_count + self.rng.randint(0, 3))
        else:
            topics.delete(name)
        if (facts := topics.facts.get(name)) is not None and self.rng.random() < 0.5:
            topics.rack_names[facts.topic_id] = [
                self.rng.choices(("r1", "r2", "\N{SNOWMAN}", "\N{GRINNING FACE}"), k=self.rng.randint(0, 3))
                for _ in range(facts.partition_count)
            ]
        elif facts is not None:
            topics.rack_names.pop(facts.topic_id, None)
        self.twins.change_topics(name, has_new=is_new)

    def commit(self) -> None:
        topics = self.twins.world.topics.facts
        member = self._some([*self.members, *self.classic])
        if not topics or member is None:
            return
        facts = topics[self.rng.choice(sorted(topics))]
        epoch = member.epoch if isinstance(member, ConsumerMember) else member.generation
        ask = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=epoch - self.rng.choice((0, 0, 0, 1, 2, -1)),
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=(
                OffsetCommitRequestTopic(
                    name=facts.name,
                    topic_id=facts.topic_id,
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=self.rng.randrange(facts.partition_count),
                            committed_offset=self.rng.randrange(1000),
                            committed_metadata="",
                        ),
                    ),
                ),
            ),
        )
        version = self.rng.choice((8, 9))
        self.twins.ask(ask, version, member.client_id)

    def fetch(self) -> None:
        if member := self._some(self.members):
            group = OffsetFetchRequestGroup(
                group_id=member.group_id,
                member_id=member.member_id,
                member_epoch=member.epoch - self.rng.choice((0, 0, 1)),
                topics=tuple(
                    OffsetFetchRequestTopics(name=name, partition_indexes=(0, 1)) for name in TOPIC_NAMES
                ),
            )
            self.twins.fetch_offsets(OffsetFetchRequest(groups=(group,), require_stable=False), 9)

    # Parts

    def _ask(self, member: ConsumerMember, epoch: int, **fields: Any) -> None:
        if epoch == 0 and "rebalance_timeout_ms" not in fields:
            fields = self._join_fields()
        if self._would_confuse_kafka(member.group_id, fields):
            return
        ask = ConsumerGroupHeartbeatRequest(
            group_id=member.group_id if self.rng.random() < 0.99 else "nobody's",
            member_id=member.member_id,
            member_epoch=epoch,
            instance_id=member.instance_id,
            **fields,
        )
        answer = self.twins.ask(ask, 1, member.client_id)
        assert answer is not None, "a heartbeat is answered at once"
        if answer.error_code in FENCED and epoch >= 0:
            member.epoch, member.owned = 0, {}
            if self.rng.random() < 0.7:
                self._forget(member)
            return
        if answer.error_code is ErrorCode.NONE and epoch >= 0:
            member.epoch = answer.member_epoch
            if answer.assignment is not None and self.rng.random() < 0.9:
                member.owned = {
                    topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions
                }

    def _join_fields(self) -> dict[str, Any]:
        return {
            "rebalance_timeout_ms": self.rng.choice((15_000, 60_000)),
            "topic_partitions": (),
            **self._subscription(),
        }

    def _subscription(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._with_regex and self.rng.random() < 0.5:
            fields["subscribed_topic_regex"] = self.rng.choice((*REGEXES, ""))
            if self.rng.random() < 0.5:
                fields["subscribed_topic_names"] = self._names() if self.rng.random() < 0.3 else ()
        else:
            fields["subscribed_topic_names"] = self._names()
        if self.rng.random() < 0.2:
            fields["server_assignor"] = "range"
        if self.rng.random() < 0.2:
            fields["rack_id"] = "r1"
        return fields

    def _names(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(TOPIC_NAMES, self.rng.randint(self._names_min, 3)))

    def _group(self) -> str:
        return self._groups[self.rng.random() < 0.2]

    def _leave_downgraded_groups(self) -> None:
        """Go on in another group: which of several members leads a classic group is up to a hash map."""
        for place, group_id in enumerate(self._groups):
            group = self.twins.world.shard.state.find_classic(group_id)
            if group is not None and len(group.members) > 1:
                self._groups[place] = group_id + group_id[0]
                self.members = [member for member in self.members if member.group_id != group_id]
                self.classic = [member for member in self.classic if member.group_id != group_id]
                self._parked = {
                    number: member for number, member in self._parked.items() if member.group_id != group_id
                }

    def _advance(self, by_ms: int) -> None:
        for number, answer in self.twins.advance(by_ms).items():
            member = self._parked.pop(number, None)
            if member is not None and answer.error_code is ErrorCode.NONE:
                self.classic.append(member)
                self._joined(member, answer)

    def _client(self) -> str:
        return f"client-{self.rng.randint(1, 3)}"

    def _new_id(self, kind: str) -> str:
        self._made += 1
        return f"{kind}{self.rng.randrange(100)}-{self._made}"

    def _some(self, members: Sequence[Any]) -> Any:
        return self.rng.choice(members) if members else None

    def _has_members(self, group_id: str) -> bool:
        """Say whether a group is a consumer group with members.

        Kafka forgets an empty one, until it loads it again, when somebody joins who claims to be a member.
        """
        group = self.twins.world.shard.state.consumers.find(group_id)
        return group is not None and not group.is_empty

    def _would_confuse_kafka(self, group_id: str, fields: dict[str, Any]) -> bool:
        """Say whether Kafka would compute a target for the wrong kind of subscriptions.

        It goes by the kind from before when a member that subscribes to nothing, or to an expression that is
        not resolved yet, comes just when a target is due for another reason.
        """
        group = self.twins.world.shard.state.consumers.find(group_id)
        if group is None or group.assignment_epoch >= group.epoch:
            return False
        subscribes = "subscribed_topic_regex" in fields or "subscribed_topic_names" in fields
        return subscribes and (
            bool(fields.get("subscribed_topic_regex")) or not fields.get("subscribed_topic_names")
        )

    def _forget(self, member: ConsumerMember) -> None:
        self.members = [other for other in self.members if other is not member]

    def _forget_classic(self, member: ClassicMember) -> None:
        self.classic = [other for other in self.classic if other is not member]


def _owned(member: ConsumerMember) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in member.owned.items()
    )
