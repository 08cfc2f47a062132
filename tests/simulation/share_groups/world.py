"""A share group with hundreds of members in virtual time: coordinators, leaders and members crash.

The group coordinator assigns partitions. Each partition has a leader and a share coordinator
(`QueuePartition`). Members fetch records from what they are assigned, accept, release and reject them, keep
them for too long, leave, or die with their connection.

    one holder        a record is locked for one member at a time
    done once         a record whose acceptance or rejection was answered is not delivered again
    counts            a leader counts each delivery, and no delivery that never was
    nothing stuck     in the end every record is done, and those that are given up have one letter
    balance           in the end each partition has as many members as the others, give or take one
"""

import random
from collections import Counter
from typing import Final

from tests.simulation.share_groups.queue_partition import QueuePartition
from tests.support.share_world import ShareWorld

from ottla.broker.share.acquiring import Wanted
from ottla.broker.share.in_flight import Acknowledgement
from ottla.broker.share.runs import AcknowledgeType
from ottla.broker.share.share_partition import SharePartition, Status
from ottla.coordination.group.settings import GroupSettings
from ottla.wire.error_code import ErrorCode

TOPIC: Final = "orders"
RECORDS: Final = 100
_ROUNDS_MAX: Final = 400
_BEATS_OF_A_STEP: Final = 6
_SESSION_MS: Final = 60_000


class Member:
    """A consumer of the group, as itself sees it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.assigned: list[int] = []


class Queue:
    """A partition, and what is known about its records from outside."""

    def __init__(self, seed: int) -> None:
        self.world = QueuePartition(seed, RECORDS)
        self.holders: dict[int, tuple[SharePartition, str, int]] = {}
        """By which leader, for whom and until when a record is locked."""
        self.counts: dict[int, tuple[SharePartition, int]] = {}
        """What the last delivery said, and which leader said it."""
        self.deliveries: Counter[int] = Counter()
        self.done: set[int] = set()
        self.rejected: set[int] = set()
        self.unanswered: set[int] = set()
        self.used_up: set[int] = set()

    def fetch(self, member: str, wanted: Wanted) -> None:
        """Give records to a member, and check that it may have them."""
        world, leader = self.world, self.world.leader
        now_ms = world.clock.monotonic_ms()
        offset = leader.in_flight.next_fetch_offset()
        batches = [batch for batch in world.batches if batch[1] >= offset]
        for first, last, count in leader.in_flight.acquire(
            member, wanted, offset, batches, world.limits, now_ms
        ):
            leader._arm(now_ms + world.limits.lock_ms)
            for number in range(first, last + 1):
                self._check_delivery(number, count, leader, now_ms)
                self.holders[number] = (leader, member, now_ms + world.limits.lock_ms)

    def _check_delivery(self, offset: int, count: int, leader: SharePartition, now_ms: int) -> None:
        assert offset not in self.done, f"done once: {offset} is delivered again"
        holder, member, until_ms = self.holders.get(offset, (None, "", 0))
        assert holder is not leader or until_ms <= now_ms, f"one holder: {member} has {offset}"
        self.deliveries[offset] += 1
        counter, before = self.counts.get(offset, (None, 0))
        if counter is leader:
            assert count == before + 1, f"counts: {offset} was delivered {before} times, now {count}"
        assert 1 <= count <= min(self.deliveries[offset], self.world.limits.deliveries_max), (
            f"counts: {offset} is said to be delivered {count} times, of {self.deliveries[offset]}"
        )
        self.counts[offset] = (leader, count)
        if count == self.world.limits.deliveries_max:
            self.used_up.add(offset)

    def say(self, member: str, kind: AcknowledgeType) -> None:
        """Let a member say something of what it has first."""
        leader = self.world.leader
        run = next((run for run in leader.in_flight.runs if run.is_held and run.member == member), None)
        if run is None:
            return
        meant = set(range(run.first, run.last + 1))
        if kind is not AcknowledgeType.RELEASE:
            self.unanswered |= meant
        leader.acknowledge(
            member,
            [Acknowledgement(run.first, run.last, (kind,))],
            lambda error, _: self._answered(meant, kind, error),
        )
        self.free(meant)

    def _answered(self, meant: set[int], kind: AcknowledgeType, error: ErrorCode) -> None:
        if kind is AcknowledgeType.RELEASE:
            return
        self.unanswered -= meant
        if error is ErrorCode.NONE:
            self.done |= meant
            if kind is AcknowledgeType.REJECT:
                self.rejected |= meant

    def lose(self, member: str) -> None:
        """The connection of a member is gone: its records are for others."""
        self.world.leader.release(member)
        self.free({number for number, held in self.holders.items() if held[1] == member})

    def free(self, offsets: set[int]) -> None:
        for number in offsets:
            self.holders.pop(number, None)

    @property
    def is_finished(self) -> bool:
        return self.world.leader.status is Status.ACTIVE and self.world.leader.in_flight.start == RECORDS

    def check_end(self) -> None:
        """Check that nothing is stuck, lost or doubled."""
        runs = self.world.leader.in_flight.runs
        assert self.is_finished, f"nothing stuck: {self.world.leader.status.name} {runs}"
        everything = self.done | self.unanswered | self.used_up
        assert everything == set(range(RECORDS)), "nothing stuck: a record is done, and nobody said so"
        letters = self.world.letters
        assert len(letters) == len(set(letters)), "nothing stuck: a letter is written twice"
        if self.world.limits.keeps_dead_letters:
            assert self.rejected <= set(letters), "nothing stuck: a letter is lost"


class Simulation:
    """One life of a group."""

    def __init__(self, seed: int, members: int = 300, partitions: int = 12, steps: int = 1_200) -> None:
        self.rng = random.Random(seed)
        self._members_wanted = members
        self._steps = steps
        self.group = ShareWorld(GroupSettings(share_group_size_max=members), **{TOPIC: partitions})
        self.queues = [Queue(self.rng.getrandbits(32)) for _ in range(partitions)]
        self.members: list[Member] = []
        self.made = 0
        self.crashes = Counter[str]()

    def run(self) -> None:
        """Go through trouble, then through the end."""
        while len(self.members) < self._members_wanted:
            self._join()
        for _ in range(self._steps):
            self._step()
        self._end()

    def summary(self) -> str:
        """Say what has happened."""
        deliveries = sum(queue.deliveries.total() for queue in self.queues)
        letters = sum(len(queue.world.letters) for queue in self.queues)
        crashes = ", ".join(f"{count} of {what}" for what, count in sorted(self.crashes.items()))
        return f"{self.made} members, {deliveries} deliveries, {letters} letters; crashes: {crashes}"

    # Members

    def _join(self) -> None:
        self.made += 1
        member = Member(f"m{self.made}")
        self.members.append(member)
        self._beat(member)

    def _beat(self, member: Member) -> None:
        answer = self.group.heartbeat(member.name, member.epoch, TOPIC)
        if answer.error_code is not ErrorCode.NONE:
            # It was taken out, or the coordinator has lost it: it joins again.
            member.epoch, member.assigned = 0, []
            return
        member.epoch = answer.member_epoch
        if answer.assignment is not None:
            member.assigned = self.group.assigned(answer).get(TOPIC, [])

    def _die(self, member: Member) -> None:
        self.crashes["members"] += 1
        self.members.remove(member)
        for queue in self.queues:
            if queue.world.leader.status is Status.ACTIVE:
                queue.lose(member.name)

    def _work(self, member: Member) -> None:
        for number in member.assigned:
            queue = self.queues[number]
            if queue.world.leader.status is not Status.ACTIVE:
                continue
            if self.rng.random() < 0.7:
                queue.say(member.name, AcknowledgeType(self.rng.randrange(1, 4)))
            else:
                queue.fetch(member.name, Wanted(self.rng.randrange(1, 8), 5, self.rng.random() < 0.5))

    # Steps

    def _step(self) -> None:
        self._advance(self.rng.randrange(12))
        chance = self.rng.random()
        if chance < 0.01:
            self.crashes["group coordinators"] += 1
            self.group.crash()
        elif chance < 0.06 and self.members:
            self._die(self.rng.choice(self.members))
        elif chance < 0.11 and len(self.members) < self._members_wanted:
            self._join()
        for queue in self.queues:
            self._trouble(queue)
        for member in self.rng.sample(self.members, min(_BEATS_OF_A_STEP, len(self.members))):
            self._beat(member)
            self._work(member)

    def _trouble(self, queue: Queue) -> None:
        if queue.world.leader.status is Status.FENCED or self.rng.random() < 0.004:
            self.crashes["leaders"] += 1
            queue.world.lead()
        if self.rng.random() < 0.004:
            self.crashes["share coordinators"] += 1
            queue.world.crash_coordinator()
        if self.rng.random() < 0.7:
            queue.world.answer_some()

    def _advance(self, by_ms: int) -> None:
        self.group.advance(by_ms)
        for queue in self.queues:
            queue.world.advance(by_ms)

    def _end(self) -> None:
        """Let those who live accept all that is left, while nothing crashes any more."""
        for _ in range(_ROUNDS_MAX):
            for queue in self.queues:
                if queue.world.leader.status is Status.FENCED:
                    queue.world.lead()
                queue.world.answer_some()
                queue.world.sync()
            self._advance(200)
            for member in self.members:
                self._beat(member)
                for number in member.assigned:
                    queue = self.queues[number]
                    if queue.world.leader.status is Status.ACTIVE and not queue.is_finished:
                        queue.fetch(member.name, Wanted(20, 20, False))
                        queue.say(member.name, AcknowledgeType.ACCEPT)
            if all(queue.is_finished for queue in self.queues):
                break
        for queue in self.queues:
            queue.check_end()
        self._check_balance()

    def _check_balance(self) -> None:
        for _ in range(4):
            self.group.advance(_SESSION_MS // 2)
            for member in self.members:
                self._beat(member)
        shares = Counter(number for member in self.members for number in member.assigned)
        assert sorted(shares) == list(range(len(self.queues))), "balance: a partition has no member"
        assert max(shares.values()) - min(shares.values()) <= 1, f"balance: {shares}"
        assert all(member.assigned for member in self.members), "balance: a member has no partition"
