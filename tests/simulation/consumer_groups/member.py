"""A simulated member of a consumer group: it beats, takes and gives up partitions, processes and commits.

It has one request under way at a time, and does after each error what a real client does: when it is fenced
it abandons everything and joins again; when an answer is lost it sends a full request.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.support.consumer_world import NEWEST

from ottla.coordination.group.environment import Client
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)

if TYPE_CHECKING:
    from tests.simulation.consumer_groups.world import Simulation

BEAT_MS: Final = 3_000
BACKOFF_MS: Final = 100
REBALANCE_TIMEOUT_MS: Final = 8_000
REQUEST_TIMEOUT_MS: Final = 5_000
LEFT: Final = -1
LEFT_FOR_NOW: Final = -2
_FENCED: Final = frozenset(
    (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
)


class SimulatedMember:
    """One member, as it knows itself."""

    def __init__(self, simulation: "Simulation", name: str, group: str, instance_id: str | None) -> None:
        self.simulation = simulation
        self.name = name
        self.group = group
        self.instance_id = instance_id
        self.client = Client(name, "/127.0.0.1", NEWEST.version)
        self.topics: tuple[str, ...] = ()
        self.regex: str | None = None
        self.epoch = 0
        self.owned: dict[TopicPartition, Uuid] = {}
        """What it reads, with the ids of the topics."""
        self.target: dict[TopicPartition, Uuid] | None = None
        """What it was told to have, while it is still giving something up."""
        self.positions: dict[TopicPartition, int] = {}
        self.is_alive = True
        self.resumes_at_ms = 0
        self.request = 0
        """The number of the request under way: an answer to an older one comes too late."""
        self._told: tuple[TopicPartitions, ...] | None = None
        self._must_tell_all = True

    def __repr__(self) -> str:
        return f"<{self.name} in epoch {self.epoch} owns {sorted(self.owned)}>"

    # Its life

    def start(self) -> None:
        """Begin by joining."""
        self._beat()

    def crash(self) -> None:
        """Stop without a word."""
        self.is_alive = False
        self.owned = {}

    def leave(self) -> None:
        """Say goodbye: for good, or for now if the member is static."""
        epoch = LEFT_FOR_NOW if self.instance_id is not None else LEFT
        self.crash()
        self.simulation.tell(self, "consumer_group_heartbeat", self._heartbeat(epoch))

    def change_subscription(self, topics: tuple[str, ...], regex: str | None) -> None:
        """Want other topics from the next heartbeat on."""
        self.topics, self.regex = topics, regex
        self._must_tell_all = True

    def lost(self, number: int) -> None:
        """No answer came to a request."""
        if number == self.request and self.is_alive:
            self.request += 1
            self._must_tell_all = True
            self._soon(self._beat, BACKOFF_MS)

    # Heartbeats

    def _beat(self) -> None:
        self._ask("consumer_group_heartbeat", self._heartbeat(self.epoch), self._beaten)

    def _heartbeat(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        fields: dict[str, Any] = {}
        owned = self._owned_topics()
        if epoch == 0 or (epoch > 0 and self._must_tell_all):
            fields = {
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.regex or "",
                "topic_partitions": () if epoch == 0 else owned,
            }
            self._must_tell_all = False
        elif owned != self._told:
            fields = {"topic_partitions": owned}
        self._told = owned
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.name,
            member_epoch=epoch,
            instance_id=self.instance_id,
            **fields,
        )

    def _beaten(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        match answer.error_code:
            case ErrorCode.NONE:
                self.epoch = answer.member_epoch
                if answer.assignment is not None:
                    self._take_over(answer)
                self._soon(self._work, self.simulation.rng.randrange(1, BEAT_MS))
            case ErrorCode.FENCED_INSTANCE_ID:
                self.crash()
            case code if code in _FENCED:
                self.owned, self.target, self.epoch = {}, None, 0
                self._soon(self._beat, BACKOFF_MS)
            case _:
                self._must_tell_all = True
                self._soon(self._beat, BACKOFF_MS)

    def _take_over(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        """Keep what stays, give up the rest in a while, and begin with what is new."""
        assert answer.assignment is not None, "the caller has looked"
        target = {
            TopicPartition(self.simulation.name_of(topic.topic_id), number): topic.topic_id
            for topic in answer.assignment.topic_partitions
            for number in topic.partitions
        }
        self.simulation.checks.assigned(self, target)
        gone = self.owned.keys() - target.keys()
        if gone:
            self.target = target
            slow = self.simulation.rng.random() < 0.02 and not self.simulation.is_calm
            delay_ms = self.simulation.rng.randrange(20_000 if slow else 300)
            self.simulation.after(delay_ms, lambda: self._give_up(target))
        else:
            self.target = None
        for where in sorted(target.keys() - self.owned.keys()):
            self.positions.pop(where, None)
            self.owned[where] = target[where]

    def _give_up(self, target: dict[TopicPartition, Uuid]) -> None:
        if self.is_alive and self.target is target:
            self.target = None
            self.owned = {where: topic for where, topic in self.owned.items() if where in target}

    # Work

    def _work(self) -> None:
        missing = [where for where in sorted(self.owned) if where not in self.positions]
        if missing:
            self._fetch(missing)
            return
        for where in sorted(self.owned):
            count = self.simulation.rng.randrange(5)
            self.simulation.checks.processed(self, where, count)
            self.positions[where] += count
        self._commit()

    def _fetch(self, missing: list[TopicPartition]) -> None:
        names = sorted({where.topic for where in missing})
        request = OffsetFetchRequestGroup(
            group_id=self.group,
            member_id=self.name,
            member_epoch=self.epoch,
            topics=tuple(
                OffsetFetchRequestTopics(
                    name=name,
                    partition_indexes=tuple(where.partition for where in missing if where.topic == name),
                )
                for name in names
            ),
        )
        self._ask("fetch_offsets", request, self._fetched)

    def _fetched(self, answer: OffsetFetchResponseGroup) -> None:
        if answer.error_code is ErrorCode.NONE:
            for topic in answer.topics:
                for part in topic.partitions:
                    where = TopicPartition(topic.name, part.partition_index)
                    if where in self.owned:
                        self.positions[where] = max(part.committed_offset, 0)
        self._soon(self._beat, self._pause_ms())

    def _commit(self) -> None:
        offsets = {where: self.positions[where] for where in self.owned if self.positions[where]}
        if not offsets or self.simulation.rng.random() < 0.6:
            self._soon(self._beat, self._pause_ms())
            return
        names = sorted({where.topic for where in offsets})
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=self.name,
            generation_id_or_member_epoch=self.epoch,
            group_instance_id=self.instance_id,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=name,
                    topic_id=next(self.owned[where] for where in offsets if where.topic == name),
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=where.partition, committed_offset=offset, committed_metadata=""
                        )
                        for where, offset in sorted(offsets.items())
                        if where.topic == name
                    ),
                )
                for name in names
            ),
        )
        self._ask("commit_offsets", request, self._committed)

    def _committed(self, answer: OffsetCommitResponse) -> None:
        self._soon(self._beat, self._pause_ms())

    # Parts

    def _ask(self, method: str, request: Any, then: Callable[[Any], None]) -> None:
        self.simulation.ask(self, method, request, then)

    def _soon(self, action: Callable[[], None], delay_ms: int) -> None:
        """Do something after a while, unless the process stands still or is gone by then."""

        def act() -> None:
            if not self.is_alive:
                return
            wait_ms = self.resumes_at_ms - self.simulation.now_ms
            if wait_ms > 0:
                self.simulation.after(wait_ms, act)
            else:
                action()

        self.simulation.after(delay_ms, act)

    def _pause_ms(self) -> int:
        return self.simulation.rng.randrange(1, BEAT_MS // 2)

    def _owned_topics(self) -> tuple[TopicPartitions, ...]:
        numbers: dict[Uuid, list[int]] = {}
        for where, topic_id in sorted(self.owned.items()):
            numbers.setdefault(topic_id, []).append(where.partition)
        return tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in numbers.items()
        )
