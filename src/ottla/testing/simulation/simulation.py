"""Simulated time: events in order, machines that take turns, and the trace of it all.

An event belongs to a machine. What is due on a machine while it is busy waits, and is then done together in
one turn, as in an event loop that has been working for a while. So the same code shows the same batching as
in a process.

Time is an integer of microseconds, and jumps from one event to the next. Of events that are due at the same
time, chance decides which comes first, and chance has one seed: two runs with the same seed and the same code
have the same trace.
"""

from collections import deque
from collections.abc import Callable
from hashlib import sha256
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, TypeAlias

from ottla.testing.simulated_disk import PowerCut, SimulatedDisk

START_WALL_MS: Final = 1_800_000_000_000
"""What the wall clock shows when a simulation begins."""

NOTED_MAX: Final = 1000
NEAR_US: Final = 250_000
"""Events that are due later are not put in order yet: most are timeouts, which are cancelled in time."""
TURN_US: Final = 10
EVENT_US: Final = 8
"""How long a machine is busy with a turn, and with each thing that it does in it."""


class Event:
    """Something that is due on a machine. Also the `Timer` of the world's scheduler."""

    __slots__ = ("args", "callback", "is_cancelled", "life")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], life: int) -> None:
        self.callback = callback
        self.args = args
        self.life = life
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not make the call."""
        self.is_cancelled = True


_Due: TypeAlias = "tuple[int, int, int, Machine, Event]"
"""When, in which order with others that are due then, and what."""
_UNDER_WAY: Final = Event(lambda: None, (), -1)


class Simulation:
    """All machines under one seed."""

    def __init__(self, seed: int, keeps_lines: bool = False) -> None:
        """With `keeps_lines` the trace can be read in `lines`, to see where two runs part."""
        self.seed = seed
        self.rng = Random(f"simulation {seed}")
        self.now_us = 0
        self.events = 0
        # One that goes round in circles would never end.
        self.events_max: int | None = None
        self.lines: list[str] | None = [] if keeps_lines else None
        self._trace = sha256()
        # Lines that are not in the digest yet: to add many at once takes a third of the time.
        self._noted: list[str] = []
        self._heap: list[_Due] = []
        # What is due at this time or later, in no order.
        self._far: list[_Due] = []
        self._far_from_us = NEAR_US
        self._sequence = 0
        self._draw = self.rng.getrandbits

    @property
    def trace(self) -> str:
        """A digest of (time, machine, effect) of everything so far: equal for equal runs."""
        self._digest()
        return self._trace.hexdigest()

    def note(self, machine: str, effect: str) -> None:
        """Add an effect to the trace."""
        noted = self._noted
        noted.append(f"{self.now_us} {machine} {effect}\n")
        if len(noted) >= NOTED_MAX:
            self._digest()

    def _digest(self) -> None:
        self._trace.update("".join(self._noted).encode())
        if self.lines is not None:
            self.lines += [line.removesuffix("\n") for line in self._noted]
        self._noted.clear()

    def post(self, machine: "Machine", delay_us: int, event: Event) -> None:
        """Have an event come after so many microseconds."""
        self._sequence = sequence = self._sequence + 1
        at_us = self.now_us + delay_us
        due = (at_us, self._draw(16), sequence, machine, event)
        if at_us < self._far_from_us:
            heappush(self._heap, due)
        else:
            self._far.append(due)

    def _let_happen(self, end_us: int, is_enough: Callable[[], bool]) -> bool:
        """Let events happen up to a time, or until it is enough. False says that it is not."""
        heap = self._heap
        while heap or self._far:
            if not heap:
                self._come_nearer()
                continue
            if heap[0][0] > end_us:
                break
            time_us, _, _, machine, event = heappop(heap)
            if event.is_cancelled or event.life != machine.life:
                continue
            self.now_us = time_us
            self.events += 1
            if self.events == self.events_max:
                raise TimeoutError(f"{self.events} events have happened, and it is not over")
            machine.deliver(event)
            if is_enough():
                return True
        return False

    def _come_nearer(self) -> None:
        """Put the next events in order, once all before them have happened."""
        far = [due for due in self._far if not due[4].is_cancelled and due[4].life == due[3].life]
        self._far_from_us = far_from_us = min([due[0] for due in far], default=self.now_us) + NEAR_US
        self._heap += sorted([due for due in far if due[0] < far_from_us])
        self._far = [due for due in far if due[0] >= far_from_us]

    def run_for(self, milliseconds: int) -> None:
        """Let so much time pass."""
        end_us = self.now_us + 1000 * milliseconds
        self._let_happen(end_us, lambda: False)
        self.now_us = end_us

    def run_until(self, is_done: Callable[[], bool], within_ms: int = 600_000) -> None:
        """Let time pass until something holds. Raises `TimeoutError` if it does not happen in time."""
        end_us = self.now_us + 1000 * within_ms
        if not is_done() and not self._let_happen(end_us, is_done):
            raise TimeoutError(f"the condition was not met within {within_ms} ms of simulated time")


class Machine:
    """A computer: a thread that does one thing after the other, a clock, and a power switch.

    It is the world's `Scheduler` and `Clock` for what runs on it.
    """

    def __init__(self, simulation: Simulation, name: str, host: str) -> None:
        self.simulation = simulation
        self.name = name
        self.host = host
        self.rng = Random(f"{name} {simulation.seed}")
        self.wall_offset_ms = START_WALL_MS
        # How many times longer than usual the disk takes.
        self.disk_slowness = 1
        self.is_paused = False
        # How often it was switched off. What was due before that never happens.
        self.life = 0
        # Its files have the time of its clock.
        self.disk: SimulatedDisk | None = None
        self.before_turn: Callable[[], None] | None = None
        self.when_power_is_cut: Callable[[], None] | None = None
        self._inbox: list[Event] = []
        self._ready: deque[Event] = deque()
        self._gathered: list[tuple[Callable[[], None], int]] = []
        self._busy_until_us = 0
        # The turn that is due, if one is. There is one event for all turns of a life: no two are due at once.
        self._turn: Event | None = None
        self._next_turn = Event(self._take_turn, (), 0)

    def switch_off(self) -> None:
        """Forget everything that was due."""
        self.life += 1
        self.is_paused = False
        self._inbox.clear()
        self._ready.clear()
        self._gathered.clear()
        self._turn = None
        self._next_turn = Event(self._take_turn, (), self.life)

    def pause(self) -> None:
        """Do nothing until `resume`. What becomes due meanwhile is done then, all together."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on."""
        self.is_paused = False
        if self._turn is None and (self._inbox or self._ready or self._gathered):
            self._take_turn_at(self.simulation.now_us)

    # The clock

    def now_ms(self) -> int:
        """Return the wall-clock time of this machine."""
        return self.wall_offset_ms + self.simulation.now_us // 1000

    def monotonic_ms(self) -> int:
        """Return the time since the simulation began."""
        return self.simulation.now_us // 1000

    def monotonic_ns(self) -> int:
        """Return the same in nanoseconds."""
        return self.simulation.now_us * 1000

    # The scheduler

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Event:
        """Call in the next turn."""
        event = Event(callback, args, self.life)
        self._ready.append(event)
        if self._turn is None:
            self._take_turn_at(self._busy_until_us)
        return event

    call_from_thread = call_soon

    def call_later(self, delay_ms: int, callback: Callable[..., object], *args: Any) -> Event:
        """Call after this many milliseconds."""
        event = Event(callback, args, self.life)
        self.simulation.post(self, 1000 * delay_ms, event)
        return event

    def call_later_us(self, delay_us: int, callback: Callable[..., object], *args: Any) -> Event:
        """Call after so many microseconds."""
        event = Event(callback, args, self.life)
        self.simulation.post(self, delay_us, event)
        return event

    def when_idle(self, callback: Callable[[], None], at_latest_ns: int) -> None:
        """Call when there is nothing else to do, or in the first turn after this time."""
        self._gathered.append((callback, at_latest_ns))
        if self._turn is None:
            self._take_turn_at(self._busy_until_us)

    def report(self, message: str, error: Exception) -> None:
        """End the simulation: a bug was found."""
        raise AssertionError(f"{self.name}: {message}") from error

    # Turns

    def deliver(self, event: Event) -> None:
        """Do what is due, as soon as the machine is not busy."""
        if event is self._turn:
            if self.is_paused:
                self._turn = None
            else:
                self._take_turn()
            return
        self._inbox.append(event)
        if self._turn is None and not self.is_paused:
            if self._busy_until_us <= self.simulation.now_us:
                self._take_turn()
            else:
                self._take_turn_at(self._busy_until_us)

    def _take_turn_at(self, time_us: int) -> None:
        simulation, self._turn = self.simulation, self._next_turn
        now_us = simulation.now_us
        simulation.post(self, time_us - now_us if time_us > now_us else 0, self._turn)

    def _take_turn(self) -> None:
        # What becomes due meanwhile needs no turn to be asked for: the end of this one looks for it.
        self._turn = _UNDER_WAY
        simulation, life = self.simulation, self.life
        now_us = simulation.now_us
        if self.disk is not None:
            self.disk.now_ms = self.wall_offset_ms + now_us // 1000
        if self.before_turn is not None:
            self.before_turn()
        inbox, self._inbox = self._inbox, []
        arrived, ready = len(inbox), len(self._ready)
        gathered = self._take_gathered(is_idle=not arrived and not ready) if self._gathered else ()
        put_off = len(gathered)
        simulation.note(self.name, f"turn {arrived} {ready} {put_off}")
        try:
            for event in inbox:
                if not event.is_cancelled:
                    event.callback(*event.args)
            self._do_ready(ready, life)
            if self.life == life:
                for callback in gathered:
                    callback()
        except PowerCut:
            self.switch_off()
            if self.when_power_is_cut is None:
                raise
            self.when_power_is_cut()
        if self.life != life:
            return
        self._busy_until_us = now_us + TURN_US + EVENT_US * (arrived + ready + put_off)
        self._turn = None
        if self._inbox or self._ready or self._gathered:
            self._take_turn_at(self._busy_until_us)

    def _do_ready(self, count: int, life: int) -> None:
        for _ in range(count):
            if self.life != life:
                # The process has ended itself, and what was left to do with it.
                return
            event = self._ready.popleft()
            if not event.is_cancelled:
                event.callback(*event.args)

    def _take_gathered(self, is_idle: bool) -> list[Callable[[], None]]:
        """Return what was put off and is due now."""
        gathered, now_ns = self._gathered, self.monotonic_ns()
        self._gathered = [] if is_idle else [one for one in gathered if one[1] > now_ns]
        return [callback for callback, at_latest_ns in gathered if is_idle or at_latest_ns <= now_ns]
