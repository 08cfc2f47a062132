"""A coordinator and hundreds of consumers in virtual time, all out of one seed.

Requests and answers take time and get lost; consumers come, go, crash and pause; the coordinator loses power
at any moment, and with it what was not synced; its log refuses writes for a while; the wall clock jumps.
"""

import hashlib
import heapq
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.group_world import START_MS, FixedTopics, GroupWorld
from tests.simulation.groups.checks import Checks
from tests.simulation.groups.consumer import REQUEST_TIMEOUT_MS, TOPIC, Consumer

from ottla.coordination.group.settings import GroupSettings
from ottla.wire.error_code import ErrorCode

TROUBLE_MS: Final = 180_000
CALM_MS: Final = 120_000
LATENCY_MS_MAX: Final = 50
PARTITIONS: Final = 24
NEVER_MS: Final = 10**12


class Simulation:
    """One run."""

    def __init__(self, seed: int, groups: int = 4, members: int = 120, trouble_ms: int = TROUBLE_MS) -> None:
        self.rng = Random(seed)
        self.world = GroupWorld(
            GroupSettings(
                initial_rebalance_delay_ms=self.rng.choice((0, 500, 3000)),
                # An expired group would start its generations over.
                offsets_retention_check_interval_ms=NEVER_MS,
            ),
            FixedTopics(**{TOPIC: PARTITIONS}),
            partitions=3,
        )
        self.world.syncs_by_itself = False
        self.checks = Checks(self)
        self.consumers: list[Consumer] = []
        self.trace = hashlib.sha256()
        self.events = 0
        self.crashes = 0
        self._heap: list[tuple[int, float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._is_syncing = False
        self._in_flight: dict[tuple[Consumer, int], None] = {}
        self._groups = [f"group-{number}" for number in range(groups)]
        self._calm_from_ms = trouble_ms
        self._loss = self.rng.choice((0.0, 0.002, 0.01))
        for _ in range(members):
            self.after(self.rng.randrange(20_000), self._add_consumer)
        self.after(self.rng.randrange(5_000), self._cause_trouble)

    @property
    def now_ms(self) -> int:
        return self.world.clock.monotonic_ms()

    @property
    def is_calm(self) -> bool:
        return self.now_ms >= self._calm_from_ms

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
        self.checks.replay_equals_memory(self.world)
        self.checks.committed_is_acknowledged(self.world)
        self.checks.everybody_works(self.consumers, PARTITIONS)

    # The network

    def ask(self, consumer: Consumer, method: str, request: Any, then: Callable[[Any], None]) -> None:
        """Send a request. Its answer comes to `then`, unless one of the two is lost."""
        number, epoch = consumer.request, self.world.epoch
        self._in_flight[consumer, number] = None
        self.after(REQUEST_TIMEOUT_MS, lambda: self._lose(consumer, number))

        def arrive() -> None:
            if epoch != self.world.epoch or self._is_lost():
                return
            if method == "fetch_offsets":
                self.world.coordinator.fetch_offsets(request, False, answer)
            else:
                getattr(self.world.coordinator, method)(
                    request, consumer.client, self.world.clock.now_ms(), answer
                )

        def answer(response: Any) -> None:
            if method == "fetch_offsets":
                self.checks.fetched(response)
            if epoch == self.world.epoch and not self._is_lost():
                self.after(self._latency_ms(), lambda: deliver(response))

        def deliver(response: Any) -> None:
            if epoch != self.world.epoch or number != consumer.request or not consumer.is_alive:
                return
            if consumer.resumes_at_ms > self.now_ms:
                self.after(consumer.resumes_at_ms - self.now_ms, lambda: deliver(response))
                return
            self._in_flight.pop((consumer, number), None)
            self.trace.update(f"{self.now_ms} {consumer.name} {method} {response!r}".encode())
            consumer.request += 1
            then(response)

        self.after(self._latency_ms(), arrive)

    def tell(self, consumer: Consumer, method: str, request: Any) -> None:
        """Send a request whose answer nobody waits for."""
        epoch = self.world.epoch

        def arrive() -> None:
            if epoch == self.world.epoch:
                getattr(self.world.coordinator, method)(
                    request, consumer.client, self.world.clock.now_ms(), lambda _: None
                )

        self.after(self._latency_ms(), arrive)

    def assign(self, member_ids: list[str]) -> dict[str, bytes]:
        """Return what a leader hands out: partitions in ranges, one byte for each."""
        assignments: dict[str, bytearray] = {member_id: bytearray() for member_id in member_ids}
        for partition in range(PARTITIONS):
            assignments[member_ids[partition * len(member_ids) // PARTITIONS]].append(partition)
        return {member_id: bytes(partitions) for member_id, partitions in assignments.items()}

    def _latency_ms(self) -> int:
        return 1 + self.rng.randrange(LATENCY_MS_MAX)

    def _is_lost(self) -> bool:
        return not self.is_calm and self.rng.random() < self._loss

    def _lose(self, consumer: Consumer, number: int) -> None:
        if (consumer, number) in self._in_flight:
            del self._in_flight[consumer, number]
            consumer.lost(number)

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
        if self.is_calm:
            for log in self.world.logs:
                log.refusal = None
            # At last somebody goes whom only the next coordinator can miss.
            self._crash_consumer()
            self._crash_coordinator()
            return
        self.rng.choice(
            (
                self._crash_consumer, self._crash_consumer, self._restart_consumer, self._restart_consumer,
                self._pause_consumer, self._pause_consumer, self._leave, self._leave, self._add_consumer,
                self._add_consumer, self._crash_coordinator, self._crash_coordinator, self._refuse_appends,
                self._replace_consumer, self._replace_consumer,
                self._turn_the_clock,
            )
        )()  # fmt: skip
        self.after(self.rng.randrange(4_000), self._cause_trouble)

    def _add_consumer(self) -> None:
        number = len(self.consumers)
        # One in four is static. Old clients know nothing of that.
        version = self.rng.choice((3, 4, 5, 8, 9, 9))
        instance_id = f"instance-{number}" if version >= 5 and self.rng.random() < 0.25 else None
        self._start(Consumer(self, f"consumer-{number}", self.rng.choice(self._groups), instance_id, version))

    def _start(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        consumer.start()

    def _pick(self) -> Consumer | None:
        alive = [consumer for consumer in self.consumers if consumer.is_alive]
        return self.rng.choice(alive) if alive else None

    def _crash_consumer(self) -> None:
        consumer = self._pick()
        if consumer is not None:
            consumer.crash()

    def _restart_consumer(self) -> None:
        consumer = self._pick()
        if consumer is not None:
            consumer.crash()
            number = len(self.consumers)
            name = f"consumer-{number}"
            again = Consumer(self, name, consumer.group, consumer.instance_id, consumer.client.version)
            self.after(self.rng.randrange(8_000), lambda: self._start(again))

    def _replace_consumer(self) -> None:
        """A static member hangs and is started anew elsewhere, but then the old one goes on."""
        static = [one for one in self.consumers if one.is_alive and one.instance_id is not None]
        if static:
            old = self.rng.choice(static)
            old.resumes_at_ms = self.now_ms + self.rng.randrange(20_000)
            name = f"consumer-{len(self.consumers)}"
            again = Consumer(self, name, old.group, old.instance_id, old.client.version)
            self.after(self.rng.randrange(8_000), lambda: self._start(again))

    def _pause_consumer(self) -> None:
        consumer = self._pick()
        if consumer is not None:
            consumer.resumes_at_ms = self.now_ms + self.rng.randrange(40_000)

    def _leave(self) -> None:
        consumer = self._pick()
        if consumer is not None:
            consumer.leave()

    def _crash_coordinator(self) -> None:
        self.crashes += 1
        self.checks.replay_equals_memory(self.world)
        # Batches that were not synced may have reached the disk all the same.
        self.world.crash(kept=self.rng.randrange(3))
        self.checks.committed_is_acknowledged(self.world)
        for consumer, number in list(self._in_flight):
            del self._in_flight[consumer, number]
            self.after(self._latency_ms(), lambda who=consumer, what=number: who.lost(what))  # type: ignore[misc]

    def _refuse_appends(self) -> None:
        log = self.rng.choice(self.world.logs)
        log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS

        def accept_again() -> None:
            log.refusal = None

        self.after(self.rng.randrange(3_000), accept_again)

    def _turn_the_clock(self) -> None:
        self.world.clock.wall_ms = max(
            START_MS, self.world.clock.wall_ms + self.rng.randrange(-(10**7), 10**7)
        )
