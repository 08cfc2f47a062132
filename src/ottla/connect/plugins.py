"""What can be named by its class in a configuration: connectors, converters, transformations, predicates.

The classes have the names of Kafka's own and of well-known Java connectors, so that a configuration written
for those works here. A plugin is declared without importing what it needs to run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ottla import __version__
from ottla.connect.configs.keys import Key
from ottla.model.ids import TopicPartition

Config = Mapping[str, str]
Offset = tuple[dict[str, Any], dict[str, Any] | None]
"""A partition of a source, and where in it to go on; None: from its beginning."""


class PluginKind(StrEnum):
    """What a plugin is, by the names of the REST API."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"


@dataclass(frozen=True)
class Plugin:
    """A class that a configuration can name. `make` gets a configuration that was checked."""

    class_name: str
    kind: PluginKind
    make: Callable[[Config], Any]
    keys: tuple[Key, ...] = ()
    version: str = __version__

    @property
    def simple_name(self) -> str:
        """The last part of the name of its class."""
        return self.class_name.rpartition(".")[2]

    def listing(self) -> dict[str, Any]:
        """Return how the REST API lists it."""
        return {"class": self.class_name, "type": self.kind.value, "version": self.version}


class Unsupported(NamedTuple):
    """An option of a Java connector that has no counterpart here."""

    advice: str
    """What happens here, or what to do instead."""
    same: tuple[str, ...] = ()
    """Values that ask for what happens here anyway."""


def _one_task(config: Config, _tasks_max: int) -> list[dict[str, str]]:
    return [dict(config)]


def _never(_config: Config) -> int | None:
    return None


def _no_errors(_config: Config) -> dict[str, list[str]]:
    return {}


def _any_offsets(_config: Config, _offsets: Iterable[Offset]) -> None:
    return None


@dataclass(frozen=True)
class ConnectorPlugin(Plugin):
    """A connector. `make` makes one of its tasks."""

    doc: str = ""
    delivery: str = "at least once"
    """What it promises, for the reference page."""
    alias: str = ""
    """A short name, beside those that its class has."""
    task_class: str = ""
    task_configs: Callable[[Config, int], list[dict[str, str]]] = _one_task
    """Divides the work among at most so many tasks."""
    errors: Callable[[Config], dict[str, list[str]]] = _no_errors
    """Finds what is wrong with several keys together, by key."""
    check_offsets: Callable[[Config, Iterable[Offset]], None] = _any_offsets
    """Raises ConnectError for offsets that this connector could not go on from."""
    alter_sink_offsets: Callable[[str, Config, Mapping[TopicPartition, int | None] | None], None] | None = (
        None
    )
    """Of a sink that keeps offsets in its target: changes them there. None: begin at the beginning."""
    unsupported: Mapping[str, Unsupported] = field(default_factory=dict)
    """Options of the Java connector that are refused. A name that ends with a dot is a prefix."""
    needless: frozenset[str] = frozenset()
    """Options of the Java connector that are taken and do nothing, since nothing depends on them here."""
    open_prefixes: tuple[str, ...] = ()
    """What keys begin with that are passed on."""
    refresh_ms: Callable[[Config], int | None] = _never
    """How often the work is divided again while it runs."""

    @property
    def is_source(self) -> bool:
        """Say whether it writes to topics."""
        return self.kind is PluginKind.SOURCE


_SUFFIXES: Final = {
    PluginKind.SOURCE: "Connector",
    PluginKind.SINK: "Connector",
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
    PluginKind.TRANSFORMATION: "Transformation",
    PluginKind.PREDICATE: "Predicate",
}


class Plugins:
    """All plugins of a worker, by their names."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.all = tuple(sorted(plugins, key=lambda plugin: plugin.class_name))
        self._by_name: dict[str, Plugin] = {}
        for plugin in self.all:
            for name in _names(plugin):
                self._by_name.setdefault(name, plugin)

    def find(self, name: str, *kinds: PluginKind) -> Plugin | None:
        """Return the plugin of a class, a simple name or an alias."""
        plugin = self._by_name.get(name)
        return plugin if plugin is not None and (not kinds or plugin.kind in kinds) else None

    def find_connector(self, name: str) -> ConnectorPlugin | None:
        """Return the connector of a class or an alias."""
        plugin = self.find(name)
        return plugin if isinstance(plugin, ConnectorPlugin) else None


def _names(plugin: Plugin) -> list[str]:
    simple = plugin.simple_name
    names = [plugin.class_name, simple, simple.removesuffix(_SUFFIXES[plugin.kind])]
    return [*names, plugin.alias] if isinstance(plugin, ConnectorPlugin) and plugin.alias else names
