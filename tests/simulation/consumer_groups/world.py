"""A coordinator and hundreds of members of consumer groups in virtual time, all out of one seed.

Requests and answers take time and get lost; members come, go, crash, pause and are slow to give up; topics
grow and new ones appear; the coordinator loses power at any moment, and with it what was not synced; its log
refuses writes for a while.
"""

import hashlib
import heapq
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.consumer_world import ChangingTopics, ConsumerWorld
from tests.simulation.consumer_groups.checks import Checks
from tests.simulation.consumer_groups.member import REQUEST_TIMEOUT_MS, SimulatedMember

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.regexes import find_matches
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.coordination.runtime.shard import Shard
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

TROUBLE_MS: Final = 120_000
CALM_MS: Final = 90_000
LATENCY_MS_MAX: Final = 40
NEVER_MS: Final = 10**12
SESSION_TIMEOUT_MS: Final = 15_000
TOPICS_MAX: Final = 6
SUBSCRIPTIONS: Final[tuple[tuple[tuple[str, ...], str | None], ...]] = (
    (("orders", "payments"), None),
    (("orders",), None),
    (("payments", "later-0"), None),
    ((), "later-.*"),
    (("orders",), "later-[0-2]"),
    ((), None),
)


class Simulation:
    """One run."""

    def __init__(self, seed: int, groups: int = 2, members: int = 150, trouble_ms: int = TROUBLE_MS) -> None:
        self.rng = Random(seed)
        self.world = ConsumerWorld(
            GroupSettings(
                offsets_retention_check_interval_ms=NEVER_MS,
                consumer_assignors=self.rng.choice((("uniform", "range"), ("uniform",), ("range",))),
                regex_refresh_interval_ms=30_000,
            ),
            ChangingTopics(orders=70, payments=40),
        )
        self.world.intervals = ConsumerIntervals(SESSION_TIMEOUT_MS, 3_000, self.rng.choice((0, 1_000)))
        self.world.syncs_by_itself = False
        self.checks = Checks(self)
        self.members: list[SimulatedMember] = []
        self.trace = hashlib.sha256()
        self.events = 0
        self.crashes = 0
        self._heap: list[tuple[int, float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._names = 0
        self._is_syncing = False
        self._in_flight: dict[tuple[SimulatedMember, int], None] = {}
        self._groups = [f"group-{number}" for number in range(groups)]
        self._is_alike = self.rng.random() < 0.5
        self._calm_from_ms = trouble_ms
        self._loss = self.rng.choice((0.0, 0.002, 0.01))
        for _ in range(members):
            self.after(self.rng.randrange(10_000), self._add_member)
        self.after(self.rng.randrange(5_000), self._cause_trouble)

    @property
    def now_ms(self) -> int:
        return self.world.clock.monotonic_ms()

    @property
    def is_calm(self) -> bool:
        return self.now_ms >= self._calm_from_ms

    def find_group(self, group_id: str) -> ConsumerGroup | None:
        shard = self.world.coordinator.shards.find(group_id)
        return shard.state.consumers.find(group_id) if isinstance(shard, Shard) else None

    def name_of(self, topic_id: Uuid) -> str:
        facts = self.world.topics.find_by_id(topic_id)
        assert facts is not None, "topics are never deleted here"
        return facts.name

    def topics_of(self, member: SimulatedMember) -> frozenset[str]:
        """Return the topics that a member wants and that exist."""
        names = self.world.topics.names()
        matched = find_matches(member.regex, names) if member.regex else []
        return frozenset((*(name for name in member.topics if name in names), *matched))

    def partitions_of(self, members: list[SimulatedMember]) -> set[TopicPartition]:
        """Return what any of these members wants."""
        facts = self.world.topics.facts
        names = {name for member in members for name in self.topics_of(member)}
        return {
            TopicPartition(name, number) for name in names for number in range(facts[name].partition_count)
        }

    # Time

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later. What is due at the same time comes in an order of the seed's."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self.rng.random(), self._sequence, action))

    def run(self) -> None:
        """Run to the end, and look at what came out."""
        while self._heap and self._heap[0][0] <= self._calm_from_ms + CALM_MS:
            at_ms, _, _, action = heapq.heappop(self._heap)
            if at_ms > self.now_ms:
                self.world.advance(at_ms - self.now_ms)
            self.events += 1
            action()
            self._sync_soon()
        self.world.sync()
        self.checks.log_is_good(self.world)
        self.checks.everybody_works()

    # The network

    def ask(self, member: SimulatedMember, method: str, request: Any, then: Callable[[Any], None]) -> None:
        """Send a request. Its answer comes to `then`, unless one of the two is lost."""
        number, epoch = member.request, self.world.epoch
        self._in_flight[member, number] = None
        self.after(REQUEST_TIMEOUT_MS, lambda: self._lose(member, number))

        def arrive() -> None:
            if epoch != self.world.epoch or self._is_lost():
                return
            if method == "fetch_offsets":
                self.world.coordinator.fetch_offsets(request, False, answer)
            else:
                getattr(self.world.coordinator, method)(
                    request, member.client, self.world.clock.now_ms(), answer
                )

        def answer(response: Any) -> None:
            if epoch != self.world.epoch:
                return
            if method == "fetch_offsets":
                self.checks.fetched(response)
            elif method == "commit_offsets":
                self.checks.commit_answered(request, response)
            if not self._is_lost():
                self.after(self._latency_ms(), lambda: deliver(response))

        def deliver(response: Any) -> None:
            if epoch != self.world.epoch or number != member.request or not member.is_alive:
                return
            if member.resumes_at_ms > self.now_ms:
                self.after(member.resumes_at_ms - self.now_ms, lambda: deliver(response))
                return
            self._in_flight.pop((member, number), None)
            self.trace.update(f"{self.now_ms} {member.name} {method} {response!r}".encode())
            member.request += 1
            then(response)

        self.after(self._latency_ms(), arrive)

    def tell(self, member: SimulatedMember, method: str, request: Any) -> None:
        """Send a request whose answer nobody waits for."""
        epoch = self.world.epoch

        def arrive() -> None:
            if epoch == self.world.epoch:
                getattr(self.world.coordinator, method)(
                    request, member.client, self.world.clock.now_ms(), lambda _: None
                )

        self.after(self._latency_ms(), arrive)

    def _latency_ms(self) -> int:
        return 1 + self.rng.randrange(LATENCY_MS_MAX)

    def _is_lost(self) -> bool:
        return not self.is_calm and self.rng.random() < self._loss

    def _lose(self, member: SimulatedMember, number: int) -> None:
        if (member, number) in self._in_flight:
            del self._in_flight[member, number]
            member.lost(number)

    # The disk

    def _sync_soon(self) -> None:
        log = self.world.logs[0]
        if self._is_syncing or log.durable == len(log.stored):
            return
        self._is_syncing = True
        slow = not self.is_calm and self.rng.random() < 0.02
        self.after(self.rng.randrange(2_000) if slow else 1 + self.rng.randrange(10), self._sync)

    def _sync(self) -> None:
        self._is_syncing = False
        self.world.sync()

    # Trouble

    def _cause_trouble(self) -> None:
        if self.is_calm:
            self.world.logs[0].refusal = None
            # At last somebody goes whom only the next coordinator can miss.
            self._crash_member()
            self._crash_coordinator()
            self.after(CALM_MS // 3, self._change_topics)
            return
        self.rng.choice(
            (
                self._crash_member, self._crash_member, self._restart_member, self._restart_member,
                self._pause_member, self._pause_member, self._leave, self._leave, self._add_member,
                self._add_member, self._crash_coordinator, self._crash_coordinator, self._refuse_appends,
                self._change_subscription, self._change_topics,
            )
        )()  # fmt: skip
        self.after(self.rng.randrange(3_000), self._cause_trouble)

    def _add_member(self) -> None:
        name = self._new_name()
        instance_id = f"instance of {name}" if self.rng.random() < 0.25 else None
        self._start(SimulatedMember(self, name, self.rng.choice(self._groups), instance_id))

    def _new_name(self) -> str:
        self._names += 1
        return f"member-{self._names}"

    def _start(self, member: SimulatedMember) -> None:
        self.members.append(member)
        member.topics, member.regex = SUBSCRIPTIONS[0] if self._is_alike else self.rng.choice(SUBSCRIPTIONS)
        member.start()

    def _pick(self) -> SimulatedMember | None:
        alive = [member for member in self.members if member.is_alive]
        return self.rng.choice(alive) if alive else None

    def _crash_member(self) -> None:
        if (member := self._pick()) is not None:
            member.crash()

    def _leave(self) -> None:
        if (member := self._pick()) is not None:
            member.leave()

    def _restart_member(self) -> None:
        """A member goes, mostly with a word, and is back under another id soon after."""
        if (member := self._pick()) is not None:
            if self.rng.random() < 0.7:
                member.leave()
            else:
                member.crash()
            again = SimulatedMember(self, self._new_name(), member.group, member.instance_id)
            self.after(self.rng.randrange(8_000), lambda: self._start(again))

    def _pause_member(self) -> None:
        if (member := self._pick()) is not None:
            member.resumes_at_ms = self.now_ms + self.rng.randrange(40_000)

    def _change_subscription(self) -> None:
        if not self._is_alike and (member := self._pick()) is not None:
            member.change_subscription(*self.rng.choice(SUBSCRIPTIONS))

    def _change_topics(self) -> None:
        topics = self.world.topics
        if len(topics.facts) < TOPICS_MAX and self.rng.random() < 0.5:
            name = f"later-{len(topics.facts) - 2}"
            topics.create(name, self.rng.randint(1, 9))
            self.world.coordinator.topics_changed([name], True)
        else:
            name = self.rng.choice(sorted(topics.facts))
            topics.grow(name, topics.facts[name].partition_count + self.rng.randint(1, 4))
            self.world.coordinator.topics_changed([name], False)

    def _crash_coordinator(self) -> None:
        self.crashes += 1
        self.checks.log_is_good(self.world)
        # Batches that were not synced may have reached the disk all the same.
        self.world.crash(kept=self.rng.randrange(3))
        for member, number in list(self._in_flight):
            del self._in_flight[member, number]
            self.after(self._latency_ms(), lambda who=member, what=number: who.lost(what))  # type: ignore[misc]

    def _refuse_appends(self) -> None:
        log = self.world.logs[0]
        log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS

        def accept_again() -> None:
            log.refusal = None

        self.after(self.rng.randrange(3_000), accept_again)
