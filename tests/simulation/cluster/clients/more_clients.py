"""Further clients of a run, which some seeds have: careless ones, hostile ones, and impostors."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random
from typing import Any, Final

from tests.simulation.cluster.clients.again import Again
from tests.simulation.cluster.clients.careless import create_careless_topics, write_carelessly
from tests.simulation.cluster.clients.endings import Endings
from tests.simulation.cluster.clients.habits import Habits
from tests.simulation.cluster.clients.hostile import Hostile, Seer
from tests.simulation.cluster.clients.impostors import change_voters_at_once, propose_too_late
from tests.simulation.cluster.clients.sharing import Sharing
from tests.simulation.cluster.clients.streaming import stream
from tests.simulation.cluster.clients.waiting import wait_for_answers
from tests.simulation.cluster.clients.workload import PLAIN_TOPIC

from ottla import Admin
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import PORT
from ottla.testing.simulation.simulation import START_WALL_MS

MORE_CLIENTS: Final = (
    "careless",
    "sequences",
    "epochs",
    "early",
    "markers",
    "fetches",
    "asker",
    "proposals",
    "voters",
)


class MoreClients:
    """Those of one run."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        seed: int,
        names: Sequence[str],
        seer: Seer,
        *,
        client_host: str = "",
        may_time_out: bool = True,
    ) -> None:
        """With `may_time_out`, clocks jump further than any timeout, or requests come again much later."""
        self._client_host = client_host
        self._cluster = cluster
        self._rng = Random(f"more clients work {seed}")
        self._names = names
        self._is_over = False
        self._until_us = 0
        self._hostile = Hostile(
            cluster.bootstrap,
            self._rng,
            lambda: START_WALL_MS + cluster.simulation.now_us // 1000,
            self._has_ended,
            self._transaction_version,
            seer,
        )
        bootstrap, rng = cluster.bootstrap, self._rng
        self._habits = Habits(
            bootstrap,
            rng,
            lambda: START_WALL_MS + cluster.simulation.now_us // 1000,
            self._has_ended,
            self._transaction_version,
            may_time_out=may_time_out,
        )
        self._endings = Endings(
            bootstrap,
            Random(f"endings work {seed}"),
            lambda: START_WALL_MS + cluster.simulation.now_us // 1000,
            self._has_ended,
            self._transaction_version,
            may_time_out=may_time_out,
        )
        self._again = Again(bootstrap, rng, self._has_ended)
        self._sharing = Sharing(bootstrap, rng, self._has_ended)

    async def create_topics(self) -> None:
        """Create what they need."""
        async with Admin(self._cluster.bootstrap, default_api_timeout_ms=30_000) as admin:
            await self._hostile.create_topic(admin)
            if "careless" in self._names:
                await create_careless_topics(admin)
            if "habits" in self._names or "endings" in self._names:
                await self._habits.create_topic(admin)
            if "sharing" in self._names:
                await self._sharing.create(admin)

    async def work_during(self, work: Awaitable[Any], last_ms: int) -> None:
        """Work as long as others do, but not for longer than this, since they never have enough."""
        self._until_us = self._cluster.simulation.now_us + 1000 * last_ms
        tasks = [asyncio.create_task(self._start_of(name)()) for name in self._names]
        try:
            await work
        finally:
            self._is_over = True
        await asyncio.gather(*tasks)

    async def finish(self) -> None:
        """Check what must be there when nothing breaks any more."""
        if "again" in self._names:
            await self._again.check()
        if "sharing" in self._names:
            await self._sharing.finish()

    def _start_of(self, name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        cluster, rng, hostile, is_over = self._cluster, self._rng, self._hostile, self._has_ended
        starts: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "careless": lambda: write_carelessly(cluster.bootstrap, rng, is_over),
            "sequences": hostile.break_sequences,
            "epochs": hostile.use_old_epochs,
            "early": hostile.begin_too_early,
            "markers": hostile.write_markers,
            "fetches": hostile.repeat_fetches,
            "asker": lambda: hostile.ask_new_leaders(lambda node_id: (cluster[node_id].machine.host, PORT)),
            "proposals": lambda: propose_too_late(cluster, rng, is_over),
            "voters": lambda: change_voters_at_once(cluster, rng, is_over),
            "again": self._again.work,
            "habits": self._habits.work,
            "endings": self._endings.work,
            "sharing": self._sharing.work,
            "streaming": lambda: stream(cluster.bootstrap, PLAIN_TOPIC, rng, is_over),
            "waiting": lambda: wait_for_answers(cluster, rng, self._client_host, is_over),
        }
        return starts[name]

    def _has_ended(self) -> bool:
        return self._is_over or self._cluster.simulation.now_us > self._until_us

    def _transaction_version(self) -> int:
        levels = [
            one.node.broker.image.features.get(TRANSACTION_VERSION, 0)
            for one in self._cluster.serving
            if one.node is not None
        ]
        return min(levels, default=0)
