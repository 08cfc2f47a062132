"""A worker: it follows the three topics, shares connectors with the other workers, and runs its part of
them.

Requests that change something are decided by the leader of the group alone. It writes records to the config
topic, and all workers act on what they read there. So a restart, or another worker, comes to the same state.
"""

import asyncio
import base64
import contextlib
import logging
import math
import secrets
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla import __version__
from ottla.client import surroundings
from ottla.client.admin.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.errors import ClientError
from ottla.client.security import cluster_for
from ottla.client.worker_group import WorkerGroup
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.common import CONNECTOR_CLASS, TASKS_MAX
from ottla.connect.configs.keys import Kind
from ottla.connect.configs.providers import ConfigProviders, with_variables
from ottla.connect.configs.secrets import Secrets
from ottla.connect.configs.validation import connector_of
from ottla.connect.errors import ConnectError, RestError
from ottla.connect.fencing import Fencing
from ottla.connect.herding import protocol
from ottla.connect.herding.assign import divide
from ottla.connect.herding.decide import Records, decide_tasks, is_key_due, is_restarted, wanted_units
from ottla.connect.herding.protocol import Member, Share
from ottla.connect.herding.reconcile import Wanted, decide_steps, is_active, wanted_by
from ottla.connect.herding.units import Unit
from ottla.connect.internal_requests import InternalRequests
from ottla.connect.loggers import Loggers, parse_level
from ottla.connect.plugins import PluginKind
from ottla.connect.running.making import Positions, TaskMaker
from ottla.connect.running.supervised import Run, SupervisedUnit
from ottla.connect.settings import WorkerSettings
from ottla.connect.store import records
from ottla.connect.store.configs import STOPPED, ConfigState, Restart
from ottla.connect.store.offsets import OffsetState
from ottla.connect.store.status_writer import StatusWriter
from ottla.connect.store.statuses import FAILED, PAUSED, UNASSIGNED, Status, StatusState
from ottla.connect.store.topic import TopicFollower, TopicWriter
from ottla.satellite.topic import create_if_missing

_logger = logging.getLogger(__name__)
_CHANGE_TIMEOUT_S: Final = 90.0
_KEY_CHECK_S: Final = 10.0


class Worker:
    """One worker."""

    def __init__(
        self,
        properties: Mapping[str, str],
        settings: WorkerSettings,
        url: str,
        providers: ConfigProviders,
        secrets: Secrets,
        tls: ssl.SSLContext,
        *,
        trusts_group: bool = False,
    ) -> None:
        self.settings = settings
        self.secrets = secrets
        self._providers = providers
        self.url = url
        self.worker_id = url.partition("://")[2]
        self.plugins = all_plugins()
        self.configs = ConfigState()
        self.statuses = StatusState()
        self.offsets = OffsetState()
        self.loggers = Loggers()
        self.cluster_id = ""
        self.leader_url: str | None = None
        self.is_leader = False
        self.properties = dict(properties)
        self._config_log = TopicFollower(
            properties, settings.config_topic, self._replay_config, self._config_moved
        )
        self._status_log = TopicFollower(properties, settings.status_topic, self.statuses.replay)
        self.offset_log = TopicFollower(properties, settings.offset_topic, self.offsets.replay)
        self.status_writer = StatusWriter(TopicWriter(properties, self._status_log), self.statuses)
        self._config_writer: TopicWriter | None = None
        self._cluster = cluster_for(AdminSettings.of(properties), retry_timeout_ms=30_000)
        self._group = WorkerGroup(
            self._cluster,
            settings.group_id,
            _Herder(self),
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        self.internal = InternalRequests(self, tls, trusts_group=trusts_group)
        self.instances = self.internal.instances
        self.fencing = Fencing(self)
        self._tasks = TaskMaker(
            self.plugins,
            settings,
            self.properties,
            Positions(self.offset_log, self.offsets),
            self._uses_topic,
            secrets.mask,
        )
        self.assigned: set[Unit] = set()
        self.generation = 0
        self._has_joined = asyncio.Event()
        self._is_following = False
        self._running: dict[Unit, tuple[Wanted, SupervisedUnit | None]] = {}
        self._divided: list[Unit] = []
        self._restarts: list[Restart | Unit] = []
        self._work = asyncio.Event()
        self._change_lock = asyncio.Lock()
        self._reconciling: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # Life

    async def start(self) -> None:
        """Read the topics, and join the other workers."""
        await self._cluster.start()
        settings = self.settings
        async with Admin(properties=self.properties) as admin:
            self.cluster_id = (await admin.cluster.describe()).cluster_id or ""
            await create_if_missing(admin, settings.config_topic, 1, settings.config_replicas)
            await create_if_missing(
                admin, settings.offset_topic, settings.offset_partitions, settings.offset_replicas
            )
            await create_if_missing(
                admin, settings.status_topic, settings.status_partitions, settings.status_replicas
            )
        for log in (self._config_log, self._status_log, self.offset_log):
            await log.start()
        self._restarts.clear()
        self._is_following = True
        await self.status_writer.start()
        self._reconciling = asyncio.create_task(self._reconcile_for_ever())
        self._renewing = asyncio.create_task(self._renew_key_for_ever())
        self._group.start()
        await self._has_joined.wait()

    async def stop(self) -> None:
        """Stop all tasks, so that they are found where they were, and leave the other workers."""
        for task in (self._reconciling, self._renewing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self.assigned = set()
        await self._stop_units(list(self._running))
        await self._group.stop("the worker stops")
        await self._resign()
        await self.status_writer.stop()
        for log in (self._config_log, self._status_log, self.offset_log):
            await log.stop()
        await self._cluster.close()

    # What the config topic says

    def _replay_config(self, key: bytes | None, value: bytes | None) -> None:
        before = dict(self.configs.loggers)
        event = self.configs.replay(key, value)
        if event is not None:
            self._restarts.append(event)
        if self._is_following and before != self.configs.loggers:
            for name, level in self.configs.loggers.items():
                if before.get(name) != level and parse_level(level) is not None:
                    self.loggers.set(name, level, surroundings.now_ms())

    def _config_moved(self) -> None:
        self._work.set()
        if self.is_leader and wanted_units(self.configs) != self._divided:
            self._group.rejoin()

    async def catch_up_with_configs(self) -> None:
        """Read the config topic to its end."""
        await self._config_log.catch_up()

    async def change(self, decide: Callable[[], Records]) -> None:
        """Decide and write, as the leader. Raises RestError."""
        try:
            async with asyncio.timeout(_CHANGE_TIMEOUT_S), self._change_lock:
                writer = self._config_writer
                if writer is None:
                    raise RestError(
                        409,
                        "Cannot complete request momentarily due to no known leader URL, likely because a "
                        "rebalance was underway.",
                    )
                await self._config_log.catch_up()
                decided = decide()
                if decided:
                    await writer.append(decided)
        except TimeoutError:
            raise RestError(500, "Request timed out. The worker is waiting for the cluster.") from None
        except ClientError as error:
            await self._resign()
            self._group.rejoin()
            raise RestError(
                409, f"Cannot complete request momentarily: the config topic could not be written: {error}"
            ) from error

    # The group

    async def take_share(self, member_id: str, generation: int, share: Share) -> None:
        """Take what the leader of the group gives this worker, and give up what it takes away."""
        self.generation = generation
        self.leader_url = share.leader_url
        is_leader = share.leader_id == member_id
        if is_leader and self._config_writer is None:
            await self._lead()
        elif not is_leader:
            await self._resign()
        self.is_leader = is_leader
        self.assigned = (self.assigned | set(share.added)) - set(share.revoked)
        self._has_joined.set()
        if share.revoked:
            await self._stop_units([unit for unit in share.revoked if unit in self._running])
            # Only now may another worker have them.
            self._group.rejoin()
        self._work.set()
        self._config_moved()

    async def _lead(self) -> None:
        """Become the one who writes to the config topic: no earlier leader can from now on."""
        writer = TopicWriter(self.properties, self._config_log, f"connect-cluster-{self.settings.group_id}")
        try:
            await writer.start()
            await self._config_log.catch_up()
            due = self._due_key()
            if due:
                await writer.append(due)
        except BaseException:
            with contextlib.suppress(ClientError):
                await writer.stop()
            raise
        self._config_writer = writer
        _logger.info("this worker leads the group %s now: %s", self.settings.group_id, self.url)

    def _due_key(self) -> Records:
        """Return the record of a new key if the one that there is has become too old."""
        now_ms = surroundings.now_ms()
        if not is_key_due(self.configs.session_key, now_ms, self.settings.key_ttl_ms):
            return []
        return [records.session_key_record(base64.b64encode(secrets.token_bytes(32)).decode(), now_ms)]

    async def _renew_key_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_KEY_CHECK_S)
            if self.is_leader and self._due_key():
                try:
                    await self.change(self._due_key)
                except RestError as error:
                    _logger.warning("the key of the workers was not renewed, trying again: %s", error)

    async def _resign(self) -> None:
        self.is_leader = False
        if self._config_writer is not None:
            writer, self._config_writer = self._config_writer, None
            with contextlib.suppress(ClientError):
                await writer.stop()

    async def lose_share(self) -> None:
        """Stop everything: other workers may have it already."""
        self.leader_url = None
        self.assigned = set()
        await self._resign()
        await self._stop_units(list(self._running))

    def divide(self, leader_id: str, members: Mapping[str, Member]) -> dict[str, Share]:
        """Divide all connectors and tasks among the members, as the leader of the group."""
        self._divided = wanted_units(self.configs)
        divisions = divide(self._divided, {name: member.owned for name, member in members.items()})
        offset = max((member.config_offset for member in members.values()), default=0)
        url = members[leader_id].url
        return {
            name: Share(leader_id, url, offset, division.added, division.revoked)
            for name, division in divisions.items()
        }

    # Running

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
        await self._restart_what_was_asked_for()
        gone = {unit for unit in self.assigned if not self._exists(unit)}
        wanted = wanted_by(self.assigned, self.configs)
        steps = decide_steps(wanted, {unit: wish for unit, (wish, _) in self._running.items()})
        await self._stop_units(steps.stop)
        self.assigned -= gone
        for unit in gone:
            self.status_writer.forget(unit)
        for unit, wish in steps.start.items():
            # While others were stopped, the group may have taken this one away.
            if unit in self.assigned:
                self._start_unit(unit, wish)

    def _exists(self, unit: Unit) -> bool:
        if unit.connector not in self.configs.connectors:
            return False
        return unit.is_connector or unit.task < len(self.configs.tasks.get(unit.connector, ()))

    async def _restart_what_was_asked_for(self) -> None:
        asked, self._restarts = self._restarts, []
        for item in asked:
            units = [item] if isinstance(item, Unit) else self._restarted_by(item)
            await self._stop_units([unit for unit in units if unit in self._running])

    def _restarted_by(self, restart: Restart) -> list[Unit]:
        return [
            unit
            for unit in self._running
            if unit.connector == restart.connector
            and is_restarted(
                self.statuses.find(unit.connector, unit.task_or_none),
                is_connector=unit.is_connector,
                include_tasks=restart.include_tasks,
                only_failed=restart.only_failed,
            )
        ]

    def restart_unit(self, unit: Unit) -> bool:
        """Restart a connector or a task of this worker. False: it is not this worker's."""
        if unit not in self.assigned:
            return False
        self._restarts.append(unit)
        self._work.set()
        return True

    async def _stop_units(self, units: Sequence[Unit]) -> None:
        stopped = [(unit, self._running.pop(unit)) for unit in units if unit in self._running]
        await asyncio.gather(*(unit.stop() for _, (_, unit) in stopped if unit is not None))
        for unit, _ in stopped:
            if not self._exists(unit):
                self.status_writer.forget(unit)
            elif unit not in self.assigned:
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

    def _connector_run(self, unit: Unit, wish: Wanted) -> Any:
        async def make() -> Run:
            resolved = self.resolve(wish.config)
            refresh_ms = connector_of(self.plugins, resolved).refresh_ms(resolved)
            return _ConnectorRun(lambda: self._publish_tasks(unit.connector, wish.config), refresh_ms)

        return make

    def _no_tasks(self, unit: Unit) -> Any:
        async def make() -> Run:
            return _ConnectorRun(lambda: self.submit_tasks(unit.connector, []))

        return make

    async def _publish_tasks(self, name: str, config: Mapping[str, str]) -> None:
        resolved = self.resolve(config)
        plugin = connector_of(self.plugins, resolved)
        tasks_max = int(resolved.get(TASKS_MAX, "1"))
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

    async def submit_tasks(self, name: str, tasks: list[dict[str, str]]) -> None:
        """Have the configurations of tasks written, by the leader."""
        if self.is_leader:
            await self.change(lambda: decide_tasks(self.configs, name, tasks))
        elif self.configs.tasks.get(name, []) != tasks:
            await self.internal.send_tasks(name, tasks)

    def _task_run(self, unit: Unit, wish: Wanted) -> Any:
        async def make() -> Run:
            connector = self.configs.connectors.get(unit.connector, {})
            # Converters and transformations are the connector's, not the task's.
            config = self.resolve({**connector, **wish.config, **_only_class(connector)})
            plugin = connector_of(self.plugins, config)
            return self._tasks.make(unit, plugin, config, _TaskBarrier(self.fencing, unit, wish.generation))

        return make

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a configuration with the values of its variables. None of them is shown from now on.

        Raises ConnectError.
        """
        resolved = self._providers.resolve(config)
        plugin = self.plugins.find_connector(resolved.get(CONNECTOR_CLASS, ""))
        for key in () if plugin is None else plugin.keys:
            if key.kind is Kind.PASSWORD:
                self.secrets.add(resolved.get(key.name, ""))
        return resolved

    def kind_of(self, config: Mapping[str, str]) -> str:
        """Return whether a configuration is of a source or of a sink."""
        plugin = self.plugins.find_connector(config.get(CONNECTOR_CLASS, ""))
        return "unknown" if plugin is None else plugin.kind.value

    def is_source(self, config: Mapping[str, str]) -> bool:
        """Say whether a configuration is of a source."""
        return self.kind_of(config) == PluginKind.SOURCE.value

    # Statuses

    def _tell_nothing(self, _unit: Unit, state: str, trace: str | None) -> None:
        if state == FAILED:
            _logger.warning("the tasks of a stopped connector could not be removed: %s", trace)

    def _tell(self, unit: Unit, state: str, trace: str | None) -> None:
        config = self.configs.connectors.get(unit.connector, {})
        plugin = self.plugins.find_connector(config.get(CONNECTOR_CLASS, ""))
        version = __version__ if plugin is None else plugin.version
        shown = None if trace is None else self.secrets.mask(trace)
        self.status_writer.tell(unit, Status(state, self.worker_id, self.generation, version, shown))

    def _uses_topic(self, unit: Unit, topic: str) -> None:
        if self.settings.topic_tracking and topic not in self.statuses.topics.get(unit.connector, {}):
            self.status_writer.tell_topic(topic, unit.connector, unit.task)

    # Offsets

    async def write_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> None:
        """Change where a source goes on. No task of it can write any more that was running before."""
        await self.fencing.fence(name)
        writer = TopicWriter(self.properties, self.offset_log)
        await writer.start()
        try:
            await writer.append([records.offset_record(name, part, offset) for part, offset in offsets])
        finally:
            await writer.stop()


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


class _ConnectorRun:
    """A connector at work: it has its tasks written, and again if its work may have changed."""

    def __init__(self, publish: Callable[[], Any], refresh_ms: int | None = None) -> None:
        self._publish = publish
        self._refresh_s = math.inf if refresh_ms is None else refresh_ms / 1000

    async def run(self, ready: Callable[[], None], is_stopping: Callable[[], bool]) -> None:
        """Divide the work among tasks."""
        loop = asyncio.get_running_loop()
        await self._publish()
        ready()
        ready()
        next_s = loop.time() + self._refresh_s
        while not is_stopping():
            await asyncio.sleep(0.1)
            if loop.time() >= next_s:
                await self._refresh()
                next_s = loop.time() + self._refresh_s

    async def _refresh(self) -> None:
        try:
            await self._publish()
        except (ConnectError, RestError) as error:
            # The tasks go on as they are.
            _logger.warning("the work of a connector could not be divided again: %s", error)


class _Herder:
    """The worker as a member of its group."""

    protocol_type = protocol.PROTOCOL_TYPE

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Say where this worker can be reached, and what it runs."""
        owned = tuple(sorted(self._worker.assigned))
        member = Member(f"{self._worker.url}/", 0, owned)
        return [
            (name, protocol.encode_member(member, version)) for name, version in protocol.PROTOCOLS.items()
        ]

    def assign(self, chosen: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Divide the connectors and tasks."""
        known = {name: protocol.decode_member(data) for name, data in members.items()}
        shares = self._worker.divide(leader_id, known)
        version = protocol.PROTOCOLS[chosen]
        return {name: protocol.encode_share(share, version) for name, share in shares.items()}

    async def assigned(self, member_id: str, generation: int, share: bytes) -> None:
        """Take this worker's share."""
        await self._worker.take_share(member_id, generation, protocol.decode_share(share))

    async def lost(self) -> None:
        """Do without."""
        await self._worker.lose_share()


def _only_class(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key == CONNECTOR_CLASS}
