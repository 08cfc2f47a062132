"""No task of an earlier generation of a source writes once one of the next has started (KIP-618).

Tasks of a source get new configurations together, as one generation. What one of them read before, another
may read now. So before the first starts, the leader of the group fences all tasks of the generation before,
also those whose number nobody has any more, and says so in the config topic. A task asks the leader for that,
makes its producer, and then reads the config topic to its end. If there is a newer generation by then, the
task is one of those that were to be fenced, and does not start.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ottla.client.admin.admin import Admin
from ottla.client.errors import ClientError
from ottla.connect.errors import ConnectError, RestError, Superseded
from ottla.connect.herding.decide import Records
from ottla.connect.herding.units import Unit
from ottla.connect.internal_requests import InternalRequests
from ottla.connect.membership import Membership
from ottla.connect.running.making import transactional_id
from ottla.connect.settings import WorkerSettings
from ottla.connect.store import records
from ottla.connect.store.worker_store import WorkerStore

_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.5


class Fencing:
    """What a worker does about earlier tasks."""

    def __init__(
        self,
        properties: Mapping[str, str],
        settings: WorkerSettings,
        store: WorkerStore,
        membership: Membership,
        internal: InternalRequests,
    ) -> None:
        self._properties = properties
        self._settings = settings
        self._store = store
        self._membership = membership
        self._internal = internal
        self._lock = asyncio.Lock()

    async def fence(self, name: str) -> None:
        """Fence all tasks of the generation before, as the leader. Raises RestError."""
        state = self._store.configs
        async with self._lock:
            await self._store.catch_up_with_configs()
            if name not in state.unfenced:
                return
            generation = state.generations.get(name)
            try:
                async with Admin(properties=self._properties) as admin:
                    for number in range(self._earlier_tasks(name)):
                        unit = Unit(name, number)
                        await admin.transactions.fence(transactional_id(self._settings, unit))
            except ClientError as error:
                raise RestError(500, f"Failed to fence the earlier tasks of {name}: {error}") from error

            def decide() -> Records:
                if state.generations.get(name) != generation:
                    raise RestError(409, f"Failed to fence the earlier tasks of {name}: it has new ones now")
                return [records.fencing_record(name, len(state.tasks.get(name, ())))]

            await self._membership.change(decide)

    def _earlier_tasks(self, name: str) -> int:
        counted = self._store.configs.fenced_tasks.get(name)
        if counted is not None:
            return counted
        # Tasks of workers that did not count them: what they said of themselves is there.
        return max(self._store.statuses.tasks.get(name, {}), default=-1) + 1

    async def wait_until_fenced(self, unit: Unit, is_stopping: Callable[[], bool]) -> None:
        """Have the leader fence what is to be fenced before a task. Raises Superseded or ConnectError."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _PATIENCE_S
        while unit.connector in self._store.configs.unfenced:
            if is_stopping():
                raise Superseded(f"{unit} is stopped before it has started")
            try:
                if self._membership.is_leader:
                    await self.fence(unit.connector)
                else:
                    await self._internal.send_fencing(unit.connector)
                    await self._store.catch_up_with_configs()
            except (RestError, ConnectError) as error:
                if loop.time() >= deadline_s:
                    raise ConnectError(
                        f"{unit} cannot start before the earlier tasks are fenced: {error}"
                    ) from error
                await asyncio.sleep(_PAUSE_S)

    async def check(self, unit: Unit, generation: int) -> None:
        """See that a task is to run as it is. Raises Superseded."""
        await self._store.catch_up_with_configs()
        state = self._store.configs
        if unit not in self._membership.share or state.generations.get(unit.connector, 0) != generation:
            raise Superseded(f"{unit} has another configuration now, or is another worker's")
