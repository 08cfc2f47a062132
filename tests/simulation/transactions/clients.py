"""Clients of a simulated coordinator: they lose messages, give up, come back, and have duplicates on the way.

A client is a generator. It yields a request, which is a function that takes an answer's callback, and gets
the answer, or None when none came in time.
"""

from collections.abc import Callable, Generator
from typing import Any

from tests.simulation.transactions.world import PARTITIONS, World

from ottla.coordination.transaction.coordinator import ProducerIdResult
from ottla.coordination.transaction.decide import Identity
from ottla.wire.error_code import ErrorCode

TIMEOUT_MS = 300
_RETRIED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

Ask = Callable[[Callable[[Any], None]], None]
Talk = Generator[Ask, Any, Any]


class Client:
    """One user of a transactional id, instance after instance."""

    def __init__(self, world: World, transactional_id: str, version: int) -> None:
        self.world = world
        self.transactional_id = transactional_id
        self.version = version
        self.is_over = False

    def start(self) -> None:
        self._go_on(self._live(), None)

    # The network

    def _go_on(self, talk: Talk, answer: Any) -> None:
        try:
            ask = talk.send(answer)
        except StopIteration:
            return
        world, rng = self.world, self.world.rng
        state = {"waits": True}

        def take(answer: Any) -> None:
            if state["waits"]:
                state["waits"] = False
                self._go_on(talk, answer)

        def receive(answer: Any) -> None:
            if rng.random() > 0.03:
                world.after(rng.randrange(1, 10), lambda: take(answer), survives=True)

        def deliver() -> None:
            if world.coordinator is not None:
                ask(receive)

        if rng.random() > 0.03:
            world.after(rng.randrange(1, 10), deliver, survives=True)
        if self.version == 2 and rng.random() < 0.05:
            # Once more, perhaps much later. Version 1 is known not to stand that.
            world.after(rng.randrange(1, 3000), deliver, survives=True)
        world.after(TIMEOUT_MS, lambda: take(None), survives=True)

    def _insist(self, ask: Ask, tries: int) -> Talk:
        for _ in range(tries):
            answer = yield ask
            code = answer.error_code if isinstance(answer, ProducerIdResult) else answer
            if answer is not None and code not in _RETRIED:
                return answer
            yield self._pause
        return None

    def _pause(self, answer: Callable[[Any], None]) -> None:
        self.world.after(20, lambda: answer(ErrorCode.NONE), survives=True)

    # The life of a client

    def _live(self) -> Talk:
        while not self.is_over:
            yield from self._live_as_one_instance()

    def _live_as_one_instance(self) -> Talk:
        world, rng = self.world, self.world.rng

        def init(answer: Callable[[ProducerIdResult], None]) -> None:
            assert world.coordinator is not None
            world.coordinator.init_producer_id(self.transactional_id, 2000, None, answer)

        given = yield from self._insist(init, 50)
        if given is None or given.error_code is not ErrorCode.NONE:
            return
        who = Identity(given.producer_id, given.producer_epoch)
        while not self.is_over and rng.random() > 0.1:
            who = yield from self._transaction(who)
            if who is None:
                return

    def _transaction(self, who: Identity) -> Talk:
        """Do one transaction. Returns who to go on as, or None if this instance cannot."""
        world, rng = self.world, self.world.rng
        label = world.new_label()
        wanted = rng.sample(PARTITIONS, rng.randrange(1, 4))
        written = set()
        for where in wanted:
            if self.version != 2:
                code = yield from self._insist(self._adding(who, where), 5)
                if code is not ErrorCode.NONE:
                    return None
            code = yield from self._insist(self._writing(who, where, label), 5)
            if code is not ErrorCode.NONE:
                break
            written.add(where)
        world.acknowledged_writes[label] = written
        if rng.random() < 0.05:
            # It dies here; what it has on the way may still arrive.
            return None
        committed = len(written) == len(wanted) and rng.random() < 0.7
        given = yield from self._insist(self._ending(who, committed), 8)
        if given is None or given.error_code is not ErrorCode.NONE:
            return None
        world.acknowledged[label] = committed
        return Identity(given.producer_id, given.producer_epoch) if self.version == 2 else who

    def _adding(self, who: Identity, where: Any) -> Ask:
        def ask(answer: Callable[[ErrorCode], None]) -> None:
            assert self.world.coordinator is not None
            self.world.coordinator.add_partitions(self.transactional_id, who, frozenset((where,)), 0, answer)

        return ask

    def _writing(self, who: Identity, where: Any, label: int) -> Ask:
        return lambda answer: self.world.write(where, self.transactional_id, who, label, self.version, answer)

    def _ending(self, who: Identity, committed: bool) -> Ask:
        def ask(answer: Callable[[ProducerIdResult], None]) -> None:
            assert self.world.coordinator is not None
            self.world.coordinator.end(self.transactional_id, who, committed, self.version, answer)

        return ask


def run(world: World, duration_ms: int = 20_000, crashes: int = 6) -> None:
    """Let clients work while the power fails now and then, and wait until everything has come to rest."""
    rng = world.rng
    clients = [Client(world, f"id-{number % 3}", 2 if number % 4 else 0) for number in range(5)]
    # A shared id is taken from one another all the time; a client of version 1 has one of its own, because a
    # late request of it cannot be told from a timely one.
    clients[0].transactional_id = "id-of-version-1"
    clients[4].transactional_id = "another-of-version-1"
    world.start()
    for client in clients:
        world.after(rng.randrange(50), client.start, survives=True)
    begin_ms = world.now_ms()
    for _ in range(crashes):
        world.after(rng.randrange(duration_ms), lambda: _crash(world), survives=True)
    world.run(begin_ms + duration_ms)
    for client in clients:
        client.is_over = True
    world.run(begin_ms + duration_ms + 30_000)


def _crash(world: World) -> None:
    if world.coordinator is not None:
        world.crash()
