"""One run of a group coordinator with its members in virtual time: the clock, the network and the disk of it.

What members do, what trouble they meet and what must hold is the matter of the simulations built on it. All
that happens comes out of one seed, so that a seed is one story.
"""

import hashlib
import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tests.support.group_world import GroupWorld

from ottla.coordination.group.environment import Client
from ottla.wire.error_code import ErrorCode


class Asker(Protocol):
    """A member: it has one request under way at a time, as on a connection."""

    name: str
    group: str
    client: Client
    is_alive: bool
    request: int
    resumes_at_ms: int

    def start(self) -> None: ...

    def crash(self) -> None: ...

    def leave(self) -> None: ...

    def lost(self, number: int) -> None: ...


World = TypeVar("World", bound=GroupWorld)
Member = TypeVar("Member", bound=Asker)


class GroupRun(ABC, Generic[World, Member]):
    """One run."""

    trouble_pause_ms_max: ClassVar[int]
    request_timeout_ms: ClassVar[int]
    latency_ms_max: ClassVar[int]
    calm_ms: ClassVar[int]

    checks: Any
    """What is checked, and what it has counted."""

    def __init__(self, rng: Random, world: World, trouble_ms: int) -> None:
        self.rng = rng
        self.world = world
        self.world.syncs_by_itself = False
        self.members: list[Member] = []
        self.trace = hashlib.sha256()
        self.events = 0
        self.crashes = 0
        self._calm_from_ms = trouble_ms
        self._heap: list[tuple[int, float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._is_syncing = False
        self._in_flight: dict[tuple[Member, int], None] = {}
        self._loss = self.rng.choice((0.0, 0.002, 0.01))
        self.after(self.rng.randrange(5_000), self._cause_trouble)

    def summary(self) -> str:
        """Say what has happened."""
        checks = self.checks
        return (
            f"{self.events} events, {len(self.members)} members, {self.crashes} crashes of the coordinator, "
            f"{checks.assignments} assignments, {checks.commits} acknowledged commits, "
            f"{checks.records} records processed, trace {self.trace.hexdigest()[:16]}"
        )

    @property
    def now_ms(self) -> int:
        return self.world.clock.monotonic_ms()

    @property
    def is_calm(self) -> bool:
        return self.now_ms >= self._calm_from_ms

    # What a simulation says of itself

    @abstractmethod
    def troubles(self) -> tuple[Callable[[], None], ...]:
        """Return what may go wrong, each as often as it is likely."""

    @abstractmethod
    def check_log(self) -> None:
        """Look at the log, before the coordinator loses power and at the end."""

    @abstractmethod
    def check_end(self) -> None:
        """Look at what came out after the calm."""

    def answered(self, method: str, request: Any, response: Any) -> None:
        """See an answer of the coordinator as it leaves."""

    def become_calm(self) -> None:
        """See the last trouble pass."""

    # Time

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later. What is due at the same time comes in an order of the seed's."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self.rng.random(), self._sequence, action))

    def run(self) -> None:
        """Run to the end, and look at what came out."""
        while self._heap and self._heap[0][0] <= self._calm_from_ms + self.calm_ms:
            at_ms, _, _, action = heapq.heappop(self._heap)
            if at_ms > self.now_ms:
                self.world.advance(at_ms - self.now_ms)
            self.events += 1
            action()
            self._sync_soon()
        self.world.sync()
        self.check_log()
        self.check_end()

    # The network

    def ask(self, member: Member, method: str, request: Any, then: Callable[[Any], None]) -> None:
        """Send a request. Its answer comes to `then`, unless one of the two is lost."""
        number, epoch = member.request, self.world.epoch
        self._in_flight[member, number] = None
        self.after(self.request_timeout_ms, lambda: self._lose(member, number))

        def arrive() -> None:
            if epoch == self.world.epoch and not self._is_lost():
                self._serve(member, method, request, answer)

        def answer(response: Any) -> None:
            if epoch != self.world.epoch:
                return
            self.answered(method, request, response)
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

    def tell(self, member: Member, method: str, request: Any) -> None:
        """Send a request whose answer nobody waits for."""
        epoch = self.world.epoch

        def arrive() -> None:
            if epoch == self.world.epoch:
                self._serve(member, method, request, lambda _: None)

        self.after(self._latency_ms(), arrive)

    def _serve(self, member: Member, method: str, request: Any, answer: Callable[[Any], None]) -> None:
        coordinator = self.world.coordinator
        if method == "fetch_offsets":
            coordinator.fetch_offsets(request, False, answer)
        else:
            getattr(coordinator, method)(request, member.client, self.world.clock.now_ms(), answer)

    def _latency_ms(self) -> int:
        return 1 + self.rng.randrange(self.latency_ms_max)

    def _is_lost(self) -> bool:
        return not self.is_calm and self.rng.random() < self._loss

    def _lose(self, member: Member, number: int) -> None:
        if (member, number) in self._in_flight:
            del self._in_flight[member, number]
            member.lost(number)

    # The disk

    def _sync_soon(self) -> None:
        """Have what was appended synced after a while, unless that will happen anyway."""
        if self._is_syncing or all(log.durable == len(log.stored) for log in self.world.logs):
            return
        self._is_syncing = True
        slow = not self.is_calm and self.rng.random() < 0.02
        self.after(self.rng.randrange(2_000) if slow else 1 + self.rng.randrange(10), self._sync)

    def _sync(self) -> None:
        self._is_syncing = False
        self.world.sync()

    # Trouble

    def _cause_trouble(self) -> None:
        if not self.is_calm:
            self.rng.choice(self.troubles())()
            self.after(self.rng.randrange(self.trouble_pause_ms_max), self._cause_trouble)
            return
        for log in self.world.logs:
            log.refusal = None
        # At last somebody goes whom only the next coordinator can miss.
        self.crash_member()
        self.crash_coordinator()
        self.become_calm()

    def start_member(self, member: Member) -> None:
        self.members.append(member)
        member.start()

    def pick(self) -> Member | None:
        """Return a living member, if there is one."""
        alive = [member for member in self.members if member.is_alive]
        return self.rng.choice(alive) if alive else None

    def crash_member(self) -> None:
        if (member := self.pick()) is not None:
            member.crash()

    def pause_member(self) -> None:
        if (member := self.pick()) is not None:
            member.resumes_at_ms = self.now_ms + self.rng.randrange(40_000)

    def leave(self) -> None:
        if (member := self.pick()) is not None:
            member.leave()

    def crash_coordinator(self) -> None:
        self.crashes += 1
        self.check_log()
        # Batches that were not synced may have reached the disk all the same.
        self.world.crash(kept=self.rng.randrange(3))
        for member, number in list(self._in_flight):
            del self._in_flight[member, number]
            self.after(self._latency_ms(), lambda who=member, what=number: who.lost(what))  # type: ignore[misc]

    def refuse_appends(self) -> None:
        log = self.rng.choice(self.world.logs)
        log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS

        def accept_again() -> None:
            log.refusal = None

        self.after(self.rng.randrange(3_000), accept_again)
