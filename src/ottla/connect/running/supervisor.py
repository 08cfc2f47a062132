"""Runs a worker's share: starts, stops and restarts connectors and tasks until what runs is what is wanted.

the config topic, or the group -> look_again -> reconcile -> stop some, start others
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla import __version__
from ottla.connect.configs.providers import with_variables
from ottla.connect.configs.resolving import Resolver
from ottla.connect.configs.secrets import Secrets
from ottla.connect.configs.shared_keys import CONNECTOR_CLASS, tasks_to_make
from ottla.connect.configs.validation import connector_of
from ottla.connect.errors import ConnectError
from ottla.connect.fencing import Fencing
from ottla.connect.herding.decide import decide_tasks, is_restarted
from ottla.connect.herding.reconcile import Wanted, decide_steps, is_active, wanted_by
from ottla.connect.herding.units import Unit
from ottla.connect.internal_requests import InternalRequests
from ottla.connect.membership import Membership
from ottla.connect.plugins import Plugins
from ottla.connect.running.connector_run import ConnectorRun
from ottla.connect.running.making import Positions, TaskMaker
from ottla.connect.running.supervised import Run, SupervisedUnit
from ottla.connect.settings import WorkerSettings
from ottla.connect.store.configs import STOPPED, Restart
from ottla.connect.store.statuses import FAILED, PAUSED, UNASSIGNED, Status
from ottla.connect.store.worker_store import WorkerStore

_logger = logging.getLogger(__name__)


class Surroundings(NamedTuple):
    """What a supervisor works with."""

    properties: Mapping[str, str]
    settings: WorkerSettings
    plugins: Plugins
    resolver: Resolver
    secrets: Secrets
    worker_id: str


class Supervisor:
    """What runs on a worker. Implements `Duties`."""

    def __init__(
        self,
        given: Surroundings,
        store: WorkerStore,
        membership: Membership,
        internal: InternalRequests,
        fencing: Fencing,
    ) -> None:
        self._given = given
        self._store = store
        self._membership = membership
        self._internal = internal
        self._fencing = fencing
        positions = Positions(store.offset_log, store.offsets)
        self._tasks = TaskMaker(
            given.plugins, given.settings, given.properties, positions, self._uses_topic, given.secrets.mask
        )
        self._running: dict[Unit, tuple[Wanted, SupervisedUnit | None]] = {}
        self._restarts: list[Unit] = []
        self._work = asyncio.Event()
        self._reconciling: asyncio.Task[None] | None = None
        store.when_moved.append(self.look_again)

    def start(self) -> None:
        """Begin."""
        self._reconciling = asyncio.create_task(self._reconcile_for_ever())

    async def stop_looking(self) -> None:
        """Start nothing more."""
        if self._reconciling is not None:
            self._reconciling.cancel()
            await asyncio.gather(self._reconciling, return_exceptions=True)

    def look_again(self) -> None:
        """Compare what runs with what is to run."""
        self._work.set()

    async def give_up(self, units: Sequence[Unit]) -> None:
        """Stop those of the units that run here."""
        await self._stop_units([unit for unit in units if unit in self._running])

    async def give_up_all(self) -> None:
        """Stop everything, so that it is found where it was."""
        await self._stop_units(list(self._running))

    def restart_unit(self, unit: Unit) -> bool:
        """Restart a connector or a task of this worker. False: it is not this worker's."""
        if unit not in self._membership.share:
            return False
        self._restarts.append(unit)
        self._work.set()
        return True

    async def submit_tasks(self, name: str, tasks: list[dict[str, str]]) -> None:
        """Have the configurations of tasks written, by the leader."""
        configs = self._store.configs
        if self._membership.is_leader:
            await self._membership.change(lambda: decide_tasks(configs, name, tasks))
        elif configs.tasks.get(name, []) != tasks:
            await self._internal.send_tasks(name, tasks)

    # Reconciling

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._reconcile()
            except Exception:
                _logger.exception("a change of connectors could not be carried out, trying again")
                await asyncio.sleep(1)
                self._work.set()

    async def _reconcile(self) -> None:
        membership = self._membership
        await self._restart_what_was_asked_for()
        gone = {unit for unit in membership.share if not self._exists(unit)}
        wanted = wanted_by(membership.share, self._store.configs)
        steps = decide_steps(wanted, {unit: wish for unit, (wish, _) in self._running.items()})
        await self._stop_units(steps.stop)
        membership.share -= gone
        for unit in gone:
            self._store.status_writer.forget(unit)
        for unit, wish in steps.start.items():
            # While others were stopped, the group may have taken this one away.
            if unit in membership.share:
                self._start_unit(unit, wish)

    def _exists(self, unit: Unit) -> bool:
        configs = self._store.configs
        if unit.connector not in configs.connectors:
            return False
        return unit.is_connector or unit.task < len(configs.tasks.get(unit.connector, ()))

    async def _restart_what_was_asked_for(self) -> None:
        units, self._restarts = self._restarts, []
        for restart in self._store.take_restarts():
            units += self._restarted_by(restart)
        await self.give_up(units)

    def _restarted_by(self, restart: Restart) -> list[Unit]:
        return [
            unit
            for unit in self._running
            if unit.connector == restart.connector
            and is_restarted(
                self._store.statuses.find(unit.connector, unit.task_or_none),
                is_connector=unit.is_connector,
                include_tasks=restart.include_tasks,
                only_failed=restart.only_failed,
            )
        ]

    async def _stop_units(self, units: Sequence[Unit]) -> None:
        stopped = [(unit, self._running.pop(unit)) for unit in units if unit in self._running]
        await asyncio.gather(*(unit.stop() for _, (_, unit) in stopped if unit is not None))
        for unit, _ in stopped:
            if not self._exists(unit):
                self._store.status_writer.forget(unit)
            elif unit not in self._membership.share:
                self._tell(unit, UNASSIGNED, None)

    def _start_unit(self, unit: Unit, wish: Wanted) -> None:
        if not is_active(wish):
            self._tell(unit, STOPPED if wish.target == STOPPED else PAUSED, None)
            self._running[unit] = (wish, None)
            if unit.is_connector and wish.target == STOPPED:
                self._running[unit] = (wish, SupervisedUnit(unit, self._no_tasks(unit), self._tell_nothing))
            return
        make = self._connector_run(unit, wish) if unit.is_connector else self._task_run(unit, wish)
        self._running[unit] = (wish, SupervisedUnit(unit, make, self._tell))

    # What runs

    def _connector_run(self, unit: Unit, wish: Wanted) -> Callable[[], Awaitable[Run]]:
        async def make() -> Run:
            resolved = self._given.resolver.resolve(wish.config)
            refresh_ms = connector_of(self._given.plugins, resolved).refresh_ms(resolved)
            return ConnectorRun(lambda: self._publish_tasks(unit.connector, wish.config), refresh_ms)

        return make

    def _no_tasks(self, unit: Unit) -> Callable[[], Awaitable[Run]]:
        async def make() -> Run:
            return ConnectorRun(lambda: self.submit_tasks(unit.connector, []))

        return make

    async def _publish_tasks(self, name: str, config: Mapping[str, str]) -> None:
        resolved = self._given.resolver.resolve(config)
        plugin = connector_of(self._given.plugins, resolved)
        tasks_max = tasks_to_make(resolved)
        tasks = await asyncio.to_thread(plugin.task_configs, resolved, tasks_max)
        if len(tasks) > tasks_max and resolved.get("tasks.max.enforce", "true").lower() == "true":
            raise ConnectError(
                f"The connector {name} has generated {len(tasks)} tasks, which is greater than {tasks_max}, "
                "the maximum number of tasks it is configured to create."
            )
        with_class = [
            {**with_variables(task, config, resolved), "task.class": plugin.task_class or plugin.class_name}
            for task in tasks
        ]
        await self.submit_tasks(name, with_class)

    def _task_run(self, unit: Unit, wish: Wanted) -> Callable[[], Awaitable[Run]]:
        async def make() -> Run:
            connector = self._store.configs.connectors.get(unit.connector, {})
            # Converters and transformations are the connector's, not the task's.
            config = self._given.resolver.resolve({**connector, **wish.config, **_only_class(connector)})
            plugin = connector_of(self._given.plugins, config)
            return self._tasks.make(unit, plugin, config, _TaskBarrier(self._fencing, unit, wish.generation))

        return make

    # Statuses

    def _tell_nothing(self, _unit: Unit, state: str, trace: str | None) -> None:
        if state == FAILED:
            _logger.warning("the tasks of a stopped connector could not be removed: %s", trace)

    def _tell(self, unit: Unit, state: str, trace: str | None) -> None:
        config = self._store.configs.connectors.get(unit.connector, {})
        plugin = self._given.plugins.find_connector(config.get(CONNECTOR_CLASS, ""))
        version = __version__ if plugin is None else plugin.version
        shown = None if trace is None else self._given.secrets.mask(trace)
        status = Status(state, self._given.worker_id, self._membership.generation, version, shown)
        self._store.status_writer.tell(unit, status)

    def _uses_topic(self, unit: Unit, topic: str) -> None:
        known = self._store.statuses.topics.get(unit.connector, {})
        if self._given.settings.topic_tracking and topic not in known:
            self._store.status_writer.tell_topic(topic, unit.connector, unit.task)


@dataclass(frozen=True)
class _TaskBarrier:
    """Keeps a task apart from those of other generations."""

    fencing: Fencing
    unit: Unit
    generation: int

    async def wait_until_fenced(self, is_stopping: Callable[[], bool]) -> None:
        """See that no task of an earlier generation can write any more. Raises Superseded."""
        await self.fencing.wait_until_fenced(self.unit, is_stopping)

    async def check(self) -> None:
        """See that the task is of the last generation. Raises Superseded."""
        await self.fencing.check(self.unit, self.generation)


def _only_class(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key == CONNECTOR_CLASS}
