"""Two clusters, a mirror between them, and faults in both, under one seed.

    python -m tests.simulation.mirror.seeded.run SEED

See docs/internals/simulation.md.
"""

import asyncio
import sys
from collections import Counter
from random import Random
from typing import Final, NamedTuple

from tests.simulation.cluster.faults.breaking import Breaking, recover
from tests.simulation.cluster.faults.kinds import FAULTS
from tests.simulation.cluster.plan import quick_settings
from tests.simulation.cluster.plans import Fault
from tests.simulation.cluster.rules.wrong import Wrong
from tests.simulation.cluster.run import keeping_garbage, quietly
from tests.simulation.meetings import Met
from tests.simulation.mirror.seeded.ending import Ending
from tests.simulation.mirror.seeded.operator import Operator
from tests.simulation.mirror.seeded.plan import SOURCE, TARGET, MirrorPlan, mirror_plan_of
from tests.simulation.mirror.seeded.source import ACT, Source
from tests.simulation.mirror.seeded.truth import Truth
from tests.simulation.mirror.seeded.watch import Watch

from ottla.mirror.link import Link
from ottla.mirror.mirroring import Mirroring
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

FAULT: Final = "faults"
RUN_MS_MAX: Final = 600_000
EVENTS_MAX: Final = 1_200_000
"""Whoever goes round in circles is noticed."""
_TARGET_ID: Final = "b3R0bGEtc2ltdWxhdGVkMg"


class Outcome(NamedTuple):
    """What a run was like."""

    trace: str
    simulated_s: float
    met: Met


class Run:
    """One run."""

    def __init__(self, plan: MirrorPlan) -> None:
        self.plan = plan
        self.rng = Random(f"mirror {plan.seed}")
        self.simulation = Simulation(plan.seed)
        self.simulation.events_max = EVENTS_MAX
        network = SimulatedNetwork(self.simulation)
        features = (f"transaction.version={plan.transaction_version}",)
        settings = quick_settings()
        self.clusters = {
            SOURCE: SimulatedCluster(
                self.simulation, network, plan.source_nodes, settings=settings, features=features
            ),
            TARGET: SimulatedCluster(
                self.simulation,
                network,
                plan.target_nodes,
                settings=settings,
                first_id=101,
                cluster_id=_TARGET_ID,
            ),
        }
        self.loop = simulated_loop(self.simulation, network)
        self.met: Met = Counter()
        self.story: list[str] = []
        self.truth = Truth()
        self.watch = Watch(self.truth, self.met)
        self.source = Source(self.clusters[SOURCE].bootstrap, self._rng("source"), self.truth, self.met)
        self.operator = Operator(
            self.clusters[TARGET].bootstrap,
            self._rng("operator"),
            self.source,
            self.truth,
            self.watch,
            self._tell,
        )
        self.mirrors: list[Mirroring] = []
        self.is_over = False
        self.wiped: list[int] = []

    def run(self) -> Outcome:
        """Run to the end, and check what is there then. Raises `Wrong` if something is."""
        with keeping_garbage():
            for cluster in self.clusters.values():
                cluster.start()
            self.loop.run(self._run(), RUN_MS_MAX)
        return Outcome(self.simulation.trace, self.simulation.now_us / 1_000_000, self.met)

    def _rng(self, whose: str) -> Random:
        return Random(f"mirror {self.plan.seed} {whose}")

    def _tell(self, what: str) -> None:
        self.simulation.note("fault", what)
        self.story.append(f"{self.simulation.now_us / 1_000_000:8.3f} s  {what}")

    async def _run(self) -> None:
        ending = Ending(
            self.clusters[SOURCE].bootstrap,
            self.clusters[TARGET].bootstrap,
            self.truth,
            self.watch,
            self.source,
            self._tell,
        )
        watching = asyncio.create_task(self._watch())
        mirroring = [asyncio.create_task(self._mirror(number)) for number in range(self.plan.mirrors)]
        lives = [asyncio.create_task(self._live(number)) for number in range(self.plan.topics)]
        operating = asyncio.create_task(self.operator.work())
        try:
            await asyncio.gather(*(self._break(where, fault) for where, fault in self.plan.faults))
            rest_s = self.plan.works_ms / 1000 - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0, rest_s))
            for cluster in self.clusters.values():
                await recover(cluster)
            self._tell("everything works again")
            if self.plan.end == "source-dies":
                await asyncio.sleep(self.rng.uniform(0, 3))
                self._tell("the source is gone")
                self.source.is_over = self.operator.is_over = self.is_over = True
                for one in self.clusters[SOURCE]:
                    one.kill()
                await operating
                await self._cancel(*lives)
                await asyncio.gather(*mirroring)
                await self._ended(watching)
                await ending.fail_over(self.rng.random() < 0.5)
                return
            self.source.is_over = True
            await asyncio.gather(*lives)
            self.operator.is_over = True
            await operating
            await self.source.settle()
            await ending.check_quiet(lambda: self._working(watching, *mirroring))
            self.is_over = True
            await asyncio.gather(*mirroring)
            await self._ended(watching)
            await ending.fail_over(self.rng.random() < 0.5)
        finally:
            await self._cancel(watching, operating, *mirroring, *lives)
        self.met[ACT, f"copies become writable: {self.plan.end}"] += 1

    def _working(self, *tasks: "asyncio.Task[None]") -> list[Mirroring]:
        """Return the mirrors that work. One that has failed is not among them for long."""
        for task in tasks:
            if task.done():
                task.result()
        return self.mirrors

    async def _ended(self, watching: "asyncio.Task[None]") -> None:
        if watching.done():
            watching.result()

    async def _cancel(self, *tasks: "asyncio.Task[None]") -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self, number: int) -> None:
        await self.source.live(f"topic-{number}", self._rng(f"topic {number}"))

    async def _watch(self) -> None:
        while True:
            for mirroring in self.mirrors:
                self.watch.look(mirroring.progress)
            await asyncio.sleep(0.1)

    async def _mirror(self, number: int) -> None:
        """Mirror until the end: now and then the process is stopped, or killed, and there is another one."""
        rng = self._rng(f"mirror {number}")
        link = Link(
            source_name="there",
            source={"bootstrap.servers": self.clusters[SOURCE].bootstrap, "request.timeout.ms": "5000"},
            target={"bootstrap.servers": self.clusters[TARGET].bootstrap, "request.timeout.ms": "5000"},
            topics="topic-.*",
            refresh_s=rng.choice((0.3, 1.0, 2.0)),
        )
        while not self.is_over:
            mirroring, stop = Mirroring(link), asyncio.Event()
            self.mirrors.append(mirroring)
            work = asyncio.create_task(mirroring.run(stop))
            until_s = asyncio.get_running_loop().time() + rng.choice((1.0, 3.0, 60.0, 60.0))
            while not self.is_over and (asyncio.get_running_loop().time() < until_s or self.source.is_over):
                await asyncio.sleep(0.1)
                if work.done():
                    work.result()
            self.mirrors.remove(mirroring)
            if rng.random() < 0.5 and not self.is_over:
                self._tell(f"mirror {number} is killed")
                self.met[ACT, "a mirror is killed"] += 1
                await self._cancel(work)
            else:
                self.met[ACT, "a mirror is stopped"] += 1
                stop.set()
                await work
            await asyncio.sleep(rng.uniform(0, 1))

    async def _break(self, where: str, fault: Fault) -> None:
        await asyncio.sleep(fault.at_ms / 1000)
        it = Breaking(
            self.clusters[where],
            Random(fault.seed),
            fault.lasts_ms,
            self.loop.machine.host,
            lambda what: self._tell(f"{where}: {what}"),
            lambda _node, _place: None,
            self.wiped,
        )
        self.met[FAULT, f"{where}: {fault.kind}"] += 1
        await FAULTS[fault.kind].run(it)


def run_mirror_seed(seed: int) -> Outcome:
    """Run what a seed stands for."""
    run = Run(mirror_plan_of(seed))
    with quietly():
        try:
            return run.run()
        except BaseException:
            _ABANDONED.append(run)
            raise


_ABANDONED: Final[list[Run]] = []
"""Runs that failed: their clients would go on in another loop if they were collected."""


def main() -> None:
    """Run one seed."""
    run = Run(mirror_plan_of(int(sys.argv[1])))
    print(run.plan, file=sys.stderr)
    try:
        with quietly():
            outcome = run.run()
    except (Wrong, TimeoutError, AssertionError):
        print(*run.story, sep="\n", file=sys.stderr)
        raise
    print(*run.story, sep="\n", file=sys.stderr)
    print(outcome.trace, outcome.simulated_s, dict(outcome.met), run.simulation.events)


if __name__ == "__main__":
    main()
