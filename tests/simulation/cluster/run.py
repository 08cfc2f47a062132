"""A whole cluster and real clients in a simulated world, with faults, under one seed.

    python -m tests.simulation.cluster.run SEED [FILE]      prints the trace; writes its lines to FILE

The nodes, the clients and the operators are those that are shipped. See docs/internals/simulation.md.
"""

import asyncio
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.simulation.cluster.clients.more_clients import MoreClients
from tests.simulation.cluster.clients.workload import Workload
from tests.simulation.cluster.faults.breaking import Breaking, recover, restart_all
from tests.simulation.cluster.faults.kinds import FAULTS
from tests.simulation.cluster.meeting.watching import Meetings
from tests.simulation.cluster.plan import plan_of
from tests.simulation.cluster.plans import FAULTS_MS_PER_OPERATION, Fault, Plan
from tests.simulation.cluster.rules.invariants import Invariants
from tests.simulation.cluster.rules.wrong import Wrong, must
from tests.simulation.meetings import Met

from ottla import Admin
from ottla.metadata.image import DEFAULT_BROKERS
from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.history import operations_of
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.config_kinds import ResourceType

RUN_MS_MAX: Final = 100_000
"""A run that takes longer than this makes no progress."""
MORE_MS: Final = 4_000
"""How long further clients work after the last fault may have come."""
EVENTS_MAX: Final = 200_000
EVENTS_PER_OPERATION_MAX: Final = 4_000
"""Runs have at most half as many events. One with more goes round in circles."""
_ABANDONED: Final[list["Run"]] = []


class Outcome(NamedTuple):
    """What a run was like."""

    trace: str
    counts: Counter[str]
    simulated_s: float
    cpu_s: float
    met: Met


class Run:
    """One run."""

    def __init__(self, plan: Plan, keeps_lines: bool = False) -> None:
        self.plan = plan
        self.others = (*plan.more, *plan.wide)
        self.simulation = Simulation(plan.seed, keeps_lines)
        self.simulation.events_max = EVENTS_MAX + EVENTS_PER_OPERATION_MAX * plan.operations
        self.network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(
            self.simulation, self.network, plan.nodes, plan.voters, plan.settings, plan.features
        )
        self.loop = simulated_loop(self.simulation, self.network)
        self.meetings = Meetings()
        self.invariants = Invariants(self.cluster, self._tell, self.meetings)
        self.workload = Workload(
            self.cluster.bootstrap,
            plan.seed,
            plan.operations,
            lambda: 1000 * self.simulation.now_us,
            self.invariants,
            plan.clients,
        )
        self.more = MoreClients(
            self.cluster,
            plan.seed,
            self.others,
            self.invariants,
            client_host=self.loop.machine.host,
            may_time_out=any(fault.kind in ("jump-clock", "late-packets") for fault in plan.faults),
        )
        self.wiped: list[int] = []
        self.story: list[str] = []

    def run(self) -> Outcome:
        """Run to the end, and check what is there then. Raises `Wrong` if something is."""
        began = time.process_time()
        with keeping_garbage(), self.meetings.watched(), self.invariants.promises.watched():
            counts = self._run()
        return Outcome(
            self.simulation.trace,
            counts,
            self.simulation.now_us / 1_000_000,
            time.process_time() - began,
            self.meetings.met,
        )

    def _run(self) -> Counter[str]:
        self.invariants.begin_with_turns()
        self.cluster.start()
        self.invariants.begin()
        if self.plan.dynamic:
            self.loop.run(self._set_configs(), RUN_MS_MAX)
        self.loop.run(self.workload.create_topics(), RUN_MS_MAX)
        if self.others:
            self.loop.run(self.more.create_topics(), RUN_MS_MAX)
        self.loop.run(self._work_and_break(), RUN_MS_MAX)
        self.loop.run(self._read_and_check(), RUN_MS_MAX)
        self.invariants.promises.check()
        return self._judge()

    async def _set_configs(self) -> None:
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.configs.alter(ResourceType.BROKER, DEFAULT_BROKERS.name, dict(self.plan.dynamic))

    async def _work_and_break(self) -> None:
        work = asyncio.gather(self.workload.work(), self._break_and_recover())
        if self.others:
            await self.more.work_during(work, MORE_MS + FAULTS_MS_PER_OPERATION * self.plan.operations)
        else:
            await work

    async def _break_and_recover(self) -> None:
        await asyncio.gather(*map(self._break, self.plan.faults))
        await recover(self.cluster)
        self._tell("everything works again")

    async def _break(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_ms / 1000)
        it = Breaking(
            self.cluster,
            Random(fault.seed),
            fault.lasts_ms,
            self.loop.machine.host,
            self._tell,
            self.invariants.note_rot,
            self.wiped,
        )
        with self.meetings.fault(fault.kind):
            await FAULTS[fault.kind].run(it)

    async def _read_and_check(self) -> None:
        await self.invariants.check_quiet()
        self.invariants.check_replicas()
        if self.plan.end:
            self._tell(f"now all nodes at once: {self.plan.end}")
            await restart_all(self.cluster, self.plan.end)
        await self.workload.write_last()
        await self.workload.read_all()
        await self.workload.check_latest()
        await self.workload.check_haunted()
        await self.more.finish()
        await self.invariants.check_quiet()
        self.invariants.check_replicas()

    def _judge(self) -> Counter[str]:
        operations = operations_of(self.workload.events)
        found = [one for one in find_anomalies(Indexes(operations)) if not one.is_legal]
        must(not found, "; ".join(f"{one.name}: key {one.key}: {one.detail}" for one in found[:3]))
        for protocol, read in self.workload.read.items():
            for key, values in self.workload.acknowledged.items():
                left = sorted(set(values) - read[key])
                must(not left, f"group: the {protocol} group did not read {left[:5]} of key {key}")
        return Counter(f"{one.function} {one.type.value}" for one in operations)

    def _tell(self, what: str) -> None:
        self.simulation.note("fault", what)
        self.story.append(f"{self.simulation.now_us / 1_000_000:8.3f} s  {what}")


def run_seed(seed: int) -> Outcome:
    """Run what a seed stands for."""
    return run_plan(plan_of(seed))


def run_plan(plan: Plan) -> Outcome:
    """Run a plan."""
    run = Run(plan)
    with quietly():
        try:
            return run.run()
        except BaseException:
            abandon(run)
            raise


def abandon(run: "Run") -> None:
    """Keep a run that failed for good.

    Its clients are in the middle of something. If they were collected, they would go on in another loop.
    """
    _ABANDONED.append(run)


@contextmanager
def keeping_garbage() -> Iterator[None]:
    """Do not look for garbage: a run is short."""
    gc.collect()
    if gc.get_freeze_count() == 0:
        # Code and codecs stay. Looking at them took a tenth of a second. It happens once, since the run that
        # has just been made stays, too, with its 8 MB.
        gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def quietly() -> Iterator[None]:
    """Let nodes log nothing, and clients that a failed run leaves behind go without a word."""
    level, hook = logging.root.manager.disable, sys.unraisablehook
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        # Other tests of this process look at what is logged.
        logging.disable(level)
        sys.unraisablehook = hook


def main() -> None:
    """Run one seed."""
    run = Run(plan_of(int(sys.argv[1])), keeps_lines=len(sys.argv) > 2)
    try:
        with quietly():
            outcome = run.run()
    except (Wrong, TimeoutError):
        print(*run.story, sep="\n", file=sys.stderr)
        raise
    finally:
        if run.simulation.lines is not None:
            run.simulation.trace  # noqa: B018 - it writes the last lines
            Path(sys.argv[2]).write_text("\n".join(run.simulation.lines))
    print(outcome.trace)
    print(*run.story, sep="\n", file=sys.stderr)
    print(
        f"{dict(outcome.counts)}, {outcome.simulated_s:.1f} simulated seconds "
        f"in {outcome.cpu_s:.1f} s of CPU: {outcome.simulated_s / outcome.cpu_s:.1f} per second",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
