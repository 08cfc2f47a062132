"""Puts a task together: its connector, its converters, and the clients that it needs."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.connect.errors import ConnectError
from ottla.connect.herding.units import Unit
from ottla.connect.plugins import ConnectorPlugin, Plugins
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.sink import SinkRun
from ottla.connect.running.source import Barrier, SourceRun
from ottla.connect.running.supervised import Run
from ottla.connect.running.tolerance import Tolerance
from ottla.connect.settings import WorkerSettings
from ottla.connect.store.offsets import OffsetState
from ottla.connect.store.topic import TopicFollower


class Positions:
    """Where sources go on, as the offsets topic says."""

    def __init__(self, log: TopicFollower, offsets: OffsetState) -> None:
        self._log = log
        self._offsets = offsets

    async def catch_up(self) -> None:
        """Read everything that is committed now."""
        await self._log.catch_up()

    def find(self, connector: str, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a position."""
        return self._offsets.find(connector, partition)


class TaskMaker:
    """Makes the tasks of a worker."""

    def __init__(
        self,
        plugins: Plugins,
        settings: WorkerSettings,
        properties: Mapping[str, str],
        positions: Positions,
        uses_topic: Callable[[Unit, str], None],
        mask: Callable[[str], str],
    ) -> None:
        self._plugins = plugins
        self._settings = settings
        self._properties = properties
        self._positions = positions
        self._uses_topic = uses_topic
        self._mask = mask

    def make(self, unit: Unit, plugin: ConnectorPlugin, config: dict[str, str], barrier: Barrier) -> Run:
        """Return one life of a task. Raises what a connector may raise."""
        refused = self._settings.permissions.errors(config)
        if refused:
            # Another worker, with other settings, may have taken the configuration.
            raise ConnectError(" ".join(text for texts in refused.values() for text in texts))
        tolerance = Tolerance(config, unit.connector, unit.task, self._mask)
        conversion = Conversion(self._plugins, config, self._settings.defaults, tolerance)
        task = plugin.make(config)
        producer = self._settings.client("producer", self._properties, config)
        if plugin.is_source:
            return SourceRun(
                unit.connector,
                unit.task,
                config,
                task,
                conversion,
                self._positions,
                barrier,
                self._settings.offset_topic,
                producer,
                transactional_id(self._settings, unit),
                lambda topic: self._uses_topic(unit, topic),
            )
        return SinkRun(
            unit.connector,
            unit.task,
            config,
            task,
            conversion,
            tolerance,
            self._consumer(unit.connector, config),
            producer,
            self._settings.offset_flush_interval_ms / 1000,
            lambda topic: self._uses_topic(unit, topic),
        )

    def _consumer(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        # Deviation: Kafka Connect reads what is not committed. Sources here are transactional, so topics
        # have what was aborted as well.
        defaults = {
            "group_id": sink_group(connector, config),
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
        }
        overrides = {**self._properties, **self._settings.clients, **config}
        if not any(name.endswith("group.protocol") for name in overrides):
            # What a dead worker has had is free when the workers notice that it is dead, and not later.
            defaults["session_timeout_ms"] = str(self._settings.session_timeout_ms)
            defaults["heartbeat_interval_ms"] = str(self._settings.heartbeat_interval_ms)
        found = self._settings.client("consumer", self._properties, config, **defaults)
        return {**found, "enable.auto.commit": "false"}


def transactional_id(settings: WorkerSettings, unit: Unit) -> str:
    """Return the name by which a source task fences its earlier lives. It is Kafka Connect's."""
    return f"{settings.group_id}-{unit.connector}-{unit.task}"


def sink_group(connector: str, config: Mapping[str, str]) -> str:
    """Return the consumer group of a sink."""
    return config.get("consumer.override.group.id") or f"connect-{connector}"
