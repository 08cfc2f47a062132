"""A coordinator and hundreds of members of consumer groups in virtual time, all out of one seed.

Requests and answers take time and get lost; members come, go, crash, pause and are slow to give up; topics
grow and new ones appear; the coordinator loses power at any moment, and with it what was not synced; its log
refuses writes for a while.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.consumer_groups.checks import Checks
from tests.simulation.consumer_groups.member import REQUEST_TIMEOUT_MS, SimulatedMember
from tests.simulation.group_run import GroupRun
from tests.support.consumer_world import ChangingTopics, ConsumerWorld

from ottla.coordination.group.consumer.group import ConsumerGroup
from ottla.coordination.group.consumer.regexes import find_matches
from ottla.coordination.group.settings import ConsumerIntervals, GroupSettings
from ottla.coordination.runtime.shard import Shard
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid

TROUBLE_MS: Final = 120_000
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


class Simulation(GroupRun[ConsumerWorld, SimulatedMember]):
    """One run."""

    trouble_pause_ms_max = 3_000
    request_timeout_ms = REQUEST_TIMEOUT_MS
    latency_ms_max = 40
    calm_ms = 90_000

    def __init__(self, seed: int, groups: int = 2, members: int = 150, trouble_ms: int = TROUBLE_MS) -> None:
        rng = Random(seed)
        settings = GroupSettings(
            offsets_retention_check_interval_ms=NEVER_MS,
            consumer_assignors=rng.choice((("uniform", "range"), ("uniform",), ("range",))),
            regex_refresh_interval_ms=30_000,
        )
        world = ConsumerWorld(settings, ChangingTopics(orders=70, payments=40))
        world.intervals = ConsumerIntervals(SESSION_TIMEOUT_MS, 3_000, rng.choice((0, 1_000)))
        super().__init__(rng, world, trouble_ms)
        self.checks = Checks(self)
        self._names = 0
        self._groups = [f"group-{number}" for number in range(groups)]
        self._is_alike = self.rng.random() < 0.5
        for _ in range(members):
            self.after(self.rng.randrange(10_000), self._add_member)

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

    def answered(self, method: str, request: Any, response: Any) -> None:
        if method == "fetch_offsets":
            self.checks.fetched(response)
        elif method == "commit_offsets":
            self.checks.commit_answered(request, response)

    def check_log(self) -> None:
        self.checks.log_is_good(self.world)

    def check_end(self) -> None:
        self.checks.everybody_works()

    # Trouble

    def troubles(self) -> tuple[Callable[[], None], ...]:
        return (
            self.crash_member, self.crash_member, self._restart_member, self._restart_member,
            self.pause_member, self.pause_member, self.leave, self.leave, self._add_member,
            self._add_member, self.crash_coordinator, self.crash_coordinator, self.refuse_appends,
            self._change_subscription, self._change_topics,
        )  # fmt: skip

    def become_calm(self) -> None:
        self.after(self.calm_ms // 3, self._change_topics)

    def start_member(self, member: SimulatedMember) -> None:
        member.topics, member.regex = SUBSCRIPTIONS[0] if self._is_alike else self.rng.choice(SUBSCRIPTIONS)
        super().start_member(member)

    def _add_member(self) -> None:
        name = self._new_name()
        instance_id = f"instance of {name}" if self.rng.random() < 0.25 else None
        self.start_member(SimulatedMember(self, name, self.rng.choice(self._groups), instance_id))

    def _new_name(self) -> str:
        self._names += 1
        return f"member-{self._names}"

    def _restart_member(self) -> None:
        """A member goes, mostly with a word, and is back under another id soon after."""
        if (member := self.pick()) is not None:
            if self.rng.random() < 0.7:
                member.leave()
            else:
                member.crash()
            again = SimulatedMember(self, self._new_name(), member.group, member.instance_id)
            self.after(self.rng.randrange(8_000), lambda: self.start_member(again))

    def _change_subscription(self) -> None:
        if not self._is_alike and (member := self.pick()) is not None:
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
