"""Simulated workers: what blocks in a process takes some simulated time here, and nobody waits for it."""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.testing.simulation.simulation import Machine
from ottla.world.disk import DiskError
from ottla.world.workers import OnLoop, Pause, Steps, SyncJob, SyncResult, throw_into

WORK_US: Final = (50, 2000)
SYNC_US: Final = (300, 3000)


class SimulatedWorkers:
    """Work that is done some time after it was asked for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._waiting: dict[Callable[[], None], None] = {}
        self._is_closed = False

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do the work later, then tell."""
        if self._is_closed:
            return

        def finish() -> None:
            del self._waiting[finish]
            error: Exception | None = None
            try:
                work()
            except Exception as raised:
                error = raised
            if not self._is_closed:
                done(error)

        self._waiting[finish] = None
        self._machine.call_later_us(_work_us(self._machine), self._finish, finish)

    def run_steps(self, steps: Steps, ended: Callable[[], None]) -> "SimulatedLongWork":
        """Work through the steps, each some time after the one before."""
        return SimulatedLongWork(self._machine, steps, ended)

    def close(self) -> None:
        """Do what is left at once, and tell nobody."""
        self._is_closed = True
        for finish in list(self._waiting):
            finish()

    def _finish(self, finish: Callable[[], None]) -> None:
        if finish in self._waiting:
            finish()


class SimulatedLongWork:
    """Steps that are worked through."""

    def __init__(self, machine: Machine, steps: Steps, ended: Callable[[], None]) -> None:
        self._machine = machine
        self._steps = steps
        self._ended = ended
        self._is_ending = False
        self._is_over = False
        self._later(self._advance, None)

    def ask_to_end(self) -> None:
        """Close the steps at the next one."""
        self._is_ending = True

    def end(self) -> None:
        """Close the steps now."""
        self._end()

    def _later(self, call: Callable[..., None], *args: object) -> None:
        self._machine.call_later_us(_work_us(self._machine), call, *args)

    def _advance(self, error: Exception | None) -> None:
        """Do what blocks up to the next step."""
        if self._is_over:
            return
        if self._is_ending:
            self._end()
            return
        step = next(self._steps, None) if error is None else throw_into(self._steps, error)
        if isinstance(step, OnLoop):
            self._later(self._do_on_loop, step)
        elif isinstance(step, Pause):
            self._machine.call_later(step.milliseconds, self._advance, None)
        else:
            self._end()

    def _do_on_loop(self, step: OnLoop) -> None:
        if self._is_over:
            return
        if self._is_ending:
            self._end()
            return
        error: Exception | None = None
        try:
            step.work()
        except Exception as raised:
            error = raised
        self._advance(error)

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._steps.close()
            self._machine.call_soon(self._ended)


class SimulatedSyncs:
    """Syncs that take a while.

    The bytes are safe at some moment between the beginning and the end: at which of the two, chance decides.
    A power cut in between may so keep what was not acknowledged, or lose it.
    """

    def __init__(self, machine: Machine, deliver: Callable[[Sequence[SyncResult]], None]) -> None:
        self._machine = machine
        self._deliver = deliver
        self._under_way: dict[SyncJob, None] = {}

    def begin(self, job: SyncJob) -> None:
        """Begin a sync."""
        machine = self._machine
        took_us = machine.rng.randint(*SYNC_US) * machine.disk_slowness
        machine.simulation.note(machine.name, f"sync begins {job!r}")
        if machine.rng.random() < 0.5:
            machine.call_later_us(took_us, self._end, job, _run(job), took_us)
        else:
            self._under_way[job] = None
            machine.call_later_us(took_us, self._run_and_end, job, took_us)

    def close(self) -> None:
        """Let what has begun be done now. Nobody is notified."""
        under_way, self._under_way = self._under_way, {}
        for job in under_way:
            _run(job)

    def _run_and_end(self, job: SyncJob, took_us: int) -> None:
        if job in self._under_way:
            del self._under_way[job]
            self._end(job, _run(job), took_us)

    def _end(self, job: SyncJob, error: DiskError | None, took_us: int) -> None:
        self._machine.simulation.note(self._machine.name, f"sync ends {job!r} {error}")
        self._deliver([SyncResult(job, error, 1000 * took_us)])


def _work_us(machine: Machine) -> int:
    return machine.rng.randint(*WORK_US) * machine.disk_slowness


def _run(job: SyncJob) -> DiskError | None:
    try:
        job.run()
    except DiskError as error:
        return error
    return None
