"""The configs a node starts with: a properties file as Kafka's server takes it, and settings on top.

Nothing is read here: the caller has the file's bytes. Every problem is found before anything is raised, so
that a user fixes a file once. An unknown key is only a warning, with the known key it resembles most: Kafka
accepts such keys too, and plugins have keys of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.declare import ConfigKey
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import InvalidConfig, UnusableConfigs
from ottla.metadata.configs.layers import NOTHING
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.requirements import find_node_problems
from ottla.model.properties import MalformedProperties, iter_properties
from ottla.wire.config_kinds import ConfigType

STARTING_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "node.id": "0",
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
        "listeners": "PLAINTEXT://127.0.0.1:9092",
    }
)
"""Deviation: what Kafka's server refuses to start without, Ottla assumes; and it binds to loopback only."""

ALONE_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
)
"""What a node assumes that knows of no other controller: three replicas of anything could not be placed."""

_PLUGIN_PREFIXES: Final = (
    "listener.name.",
    "config.providers.",
    "metrics.jmx.",
    "rlmm.config.",
    "rsm.config.",
)


_LIKE_A_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+|[a-z]+")
"""What may be the name of a config. Everything else may be part of a secret, such as a line of a key."""


class LoadedConfig(NamedTuple):
    """What a node starts with, and what to tell the user about it."""

    configs: EffectiveConfigs
    warnings: tuple[str, ...]

    @property
    def config(self) -> NodeConfig:
        """The values."""
        return self.configs.node


class _Setting(NamedTuple):
    where: str
    text: str


def load_node_config(
    properties: bytes = b"", overrides: Mapping[str, str] = NOTHING, *, origin: str = "server.properties"
) -> LoadedConfig:
    """Put together what a node starts with. Raises UnusableConfigs, which lists every problem.

    `origin` is the name of the file in messages; `overrides` are settings of the command line.
    """
    given = _given_settings(properties, overrides, origin)
    strange = [where for name, (where, _) in given.items() if not _is_like_a_name(name)]
    given = {name: setting for name, setting in given.items() if _is_like_a_name(name)}
    problems = list(_find_problems(given))
    if problems:
        raise UnusableConfigs(tuple(problems))
    static = {**_assumed(given), **{name: setting.text for name, setting in given.items()}}
    # Kafka knows a node by both names and shows both.
    static.setdefault("broker.id", static["node.id"])
    configs = EffectiveConfigs(static)
    problems = list(find_node_problems(configs.node))
    if problems:
        raise UnusableConfigs(tuple(problems))
    return LoadedConfig(configs, (*_find_warnings(given), *_find_strange(strange)))


def _assumed(given: Mapping[str, _Setting]) -> dict[str, str]:
    assumed = dict(STARTING_VALUES)
    if "node.id" not in given and "broker.id" in given:
        assumed["node.id"] = given["broker.id"].text
    if not ({"controller.quorum.voters", "controller.quorum.bootstrap.servers"} & given.keys()):
        assumed.update(ALONE_VALUES)
    return assumed


def _given_settings(properties: bytes, overrides: Mapping[str, str], origin: str) -> dict[str, _Setting]:
    given: dict[str, _Setting] = {}
    try:
        for line, name, text in iter_properties(properties):
            given[name] = _Setting(f"{origin}:{line}", text)
    except MalformedProperties as error:
        raise UnusableConfigs((f"{origin}:{error.line}: {error.reason}",)) from None
    for name, text in overrides.items():
        given[name] = _Setting("command line", text)
    return given


def _find_problems(given: Mapping[str, _Setting]) -> Iterator[str]:
    for name, (where, text) in given.items():
        key = NodeConfig.keys.get(name)
        if key is None:
            continue
        try:
            key.parse(text)
        except InvalidConfig as error:
            allowed = f" (allowed: {key.rule})" if key.rule is not None and str(key.rule) else ""
            yield f"{where}: {error}{allowed}"


def _find_warnings(given: Mapping[str, _Setting]) -> Iterator[str]:
    for name, (where, text) in given.items():
        key = NodeConfig.keys.get(name)
        if key is None:
            if not name.startswith(_PLUGIN_PREFIXES):
                yield f"{where}: unknown configuration {name}{_hint(name)}"
        elif key.inert and key.parse(text) not in _harmless_values(key):
            yield f"{where}: {name} has no effect in Ottla yet"


def is_secret(name: str) -> bool:
    """Say whether the value of a config, also of one for a single listener, is for nobody to see."""
    return any(
        key.type is ConfigType.PASSWORD and (name == known or name.endswith(f".{known}"))
        for known, key in NodeConfig.keys.items()
    )


def _is_like_a_name(name: str) -> bool:
    return name in NodeConfig.keys or _LIKE_A_NAME.fullmatch(name) is not None


def _find_strange(places: Sequence[str]) -> Iterator[str]:
    """Say where lines are that are no configs, without what is in them."""
    if places:
        more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        yield (
            f"{places[0]}: this line{more} is no configuration, and was left out; a value of several lines "
            "needs a backslash at the end of each line but the last"
        )


def _harmless_values(key: ConfigKey[Any]) -> tuple[object, ...]:
    """Return the values that say what is so anyway."""
    assumed = STARTING_VALUES.get(key.name)
    return (key.default,) if assumed is None else (key.default, key.parse(assumed))


def _hint(name: str) -> str:
    # Imported here because it takes 10 ms, and most nodes start without an unknown key.
    import difflib

    nearest = difflib.get_close_matches(name, NodeConfig.keys, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""
