"""The three topics of a group of workers, followed: configurations, statuses and offsets.

All workers read the same records, so all have the same state. What has to know that it has changed adds
itself to `when_moved`, or takes the restarts that were asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.client import surroundings
from ottla.client.admin.admin import Admin
from ottla.connect.loggers import Loggers, parse_level
from ottla.connect.settings import WorkerSettings
from ottla.connect.store import records
from ottla.connect.store.configs import ConfigState, Restart
from ottla.connect.store.offsets import OffsetState
from ottla.connect.store.status_writer import StatusWriter
from ottla.connect.store.statuses import StatusState
from ottla.connect.store.topic import TopicFollower, TopicWriter
from ottla.satellite.topic import create_if_missing


class WorkerStore:
    """What the topics say, and the writers that any worker may use."""

    def __init__(self, properties: Mapping[str, str], settings: WorkerSettings) -> None:
        self._properties = properties
        self._settings = settings
        self.configs = ConfigState()
        self.statuses = StatusState()
        self.offsets = OffsetState()
        self.loggers = Loggers()
        self.config_log = TopicFollower(properties, settings.config_topic, self._replay_config, self._moved)
        self.status_log = TopicFollower(properties, settings.status_topic, self.statuses.replay)
        self.offset_log = TopicFollower(properties, settings.offset_topic, self.offsets.replay)
        self.status_writer = StatusWriter(TopicWriter(properties, self.status_log), self.statuses)
        self.when_moved: list[Callable[[], None]] = []
        self._restarts: list[Restart] = []
        self._is_following = False

    async def start(self, admin: Admin) -> None:
        """Read the topics to their ends. Those that are missing are created."""
        settings = self._settings
        await create_if_missing(admin, settings.config_topic, 1, settings.config_replicas)
        await create_if_missing(
            admin, settings.offset_topic, settings.offset_partitions, settings.offset_replicas
        )
        await create_if_missing(
            admin, settings.status_topic, settings.status_partitions, settings.status_replicas
        )
        for log in (self.config_log, self.status_log, self.offset_log):
            await log.start()
        # What was asked for before this worker was there is done.
        self._restarts.clear()
        self._is_following = True
        await self.status_writer.start()

    async def stop(self) -> None:
        """Follow no more, and write out the statuses."""
        await self.status_writer.stop()
        for log in (self.config_log, self.status_log, self.offset_log):
            await log.stop()

    async def catch_up_with_configs(self) -> None:
        """Read the config topic to its end."""
        await self.config_log.catch_up()

    def take_restarts(self) -> list[Restart]:
        """Return the restarts that were asked for since the last call."""
        restarts, self._restarts = self._restarts, []
        return restarts

    async def write_offsets(
        self, name: str, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> None:
        """Change where a source goes on."""
        writer = TopicWriter(self._properties, self.offset_log)
        await writer.start()
        try:
            await writer.append([records.offset_record(name, part, offset) for part, offset in offsets])
        finally:
            await writer.stop()

    def _replay_config(self, key: bytes | None, value: bytes | None) -> None:
        before = dict(self.configs.loggers)
        restart = self.configs.replay(key, value)
        if restart is not None:
            self._restarts.append(restart)
        if self._is_following and before != self.configs.loggers:
            for name, level in self.configs.loggers.items():
                if before.get(name) != level and parse_level(level) is not None:
                    self.loggers.set(name, level, surroundings.now_ms())

    def _moved(self) -> None:
        for tell in self.when_moved:
            tell()
