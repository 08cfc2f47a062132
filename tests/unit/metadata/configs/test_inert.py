"""What a declaration says about being acted on is true: the rest of the source reads the value, or does not.

A config is acted on if code outside its package reads it: its own attribute, a property of NodeConfig that
it feeds, or the config of a topic or a group that takes it from the broker or is bounded by it.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ottla.metadata.configs import node
from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.declare import ConfigKey, ConfigValues
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.requirements import GROUP_BOUNDS
from ottla.metadata.configs.synonyms import time_synonyms
from ottla.metadata.configs.topic import TopicConfig

SOURCE = Path(node.__file__).parents[2]
RECEIVERS = {
    NodeConfig: ("config", "_config", "node", "node_config"),
    TopicConfig: ("topic", "topic_config"),
    GroupConfig: ("group", "group_config"),
    ClientMetricsConfig: ("subscription", "client_metrics_config"),
}
"""What an object with these configs is called where it is used."""


@cache
def source_outside() -> str:
    paths = sorted(path for path in SOURCE.rglob("*.py") if Path(node.__file__).parent not in path.parents)
    return "\n".join(path.read_text() for path in paths)


@cache
def attributes_read_of(*receivers: str) -> frozenset[str]:
    return frozenset(re.findall(rf"\b(?:{'|'.join(receivers)})\.([a-z_0-9]+)", source_outside()))


@cache
def attributes_read_by_replication() -> frozenset[str]:
    """There the configs of the node are called settings, as a protocol with those of them that are used."""
    paths = [
        path for part in ("replication", "coordinators") for path in (SOURCE / "broker" / part).glob("*.py")
    ]
    return frozenset(
        re.findall(r"settings(?:\(\))?\.([a-z_0-9]+)", "\n".join(path.read_text() for path in paths))
    )


def attributes_read(declarations: type[ConfigValues]) -> frozenset[str]:
    read = attributes_read_of(*RECEIVERS[declarations])
    return read | attributes_read_by_replication() if declarations is NodeConfig else read


@cache
def feeds() -> dict[str, frozenset[str]]:
    """Return the attributes that each property of NodeConfig reads, directly or by way of another."""
    (declaration,) = (
        part
        for part in ast.parse(Path(node.__file__).read_text()).body
        if isinstance(part, ast.ClassDef) and part.name == "NodeConfig"
    )
    return {
        function.name: frozenset(
            part.attr
            for part in ast.walk(function)
            if isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and part.value.id == "self"
        )
        for function in declaration.body
        if isinstance(function, ast.FunctionDef)
    }


def is_acted_on(declarations: type[ConfigValues], key: ConfigKey[Any]) -> bool:
    read = attributes_read(declarations)
    if key.attribute in read:
        return True
    if declarations is NodeConfig and key.name in names_read_of_listeners():
        return True
    if declarations is TopicConfig and key.name in names_read_by_mirrors():
        return True
    if declarations is not NodeConfig:
        return False
    heirs = [
        (other, heir) for other in (TopicConfig, GroupConfig) for heir in other.keys.values()
        if key.name in broker_names(heir)
    ]  # fmt: skip
    bounded = [
        GroupConfig.keys[bound.name] for bound in GROUP_BOUNDS if key.name in (bound.lowest, bound.highest)
    ]
    return (
        feeds_what_is_read(key.attribute)
        or any(is_acted_on(other, heir) for other, heir in heirs)
        or any(is_acted_on(GroupConfig, config) for config in bounded)
    )


@cache
def names_read_of_listeners() -> frozenset[str]:
    """Return the configs that are read by name, because they may be set for one listener."""
    source = "".join(path.read_text() for path in (SOURCE / "broker").rglob("*.py"))
    names = re.findall(r'\.(?:value|secret|own_value)\(\s*"([a-z.]+)"', source)
    return frozenset((*names, *re.findall(r'^_JAAS: Final = "([a-z.]+)"', source, re.MULTILINE)))


@cache
def names_read_by_mirrors() -> frozenset[str]:
    """Return the configs of topics that mirrors, which are clients, read by name."""
    source = "".join(path.read_text() for path in (SOURCE / "mirror").rglob("*.py"))
    return frozenset(re.findall(r'^\w+_CONFIG: Final = "([a-z.]+)"', source, re.MULTILINE))


def feeds_what_is_read(attribute: str) -> bool:
    return any(
        attribute in fed and (name in attributes_read(NodeConfig) or feeds_what_is_read(name))
        for name, fed in feeds().items()
    )


def broker_names(heir: ConfigKey[Any]) -> tuple[str, ...]:
    """Return the broker's configs that a topic's or a group's value may come from."""
    return time_synonyms(heir.broker_key) if heir.broker_key else ()


@pytest.mark.parametrize("declarations", RECEIVERS, ids=lambda declarations: declarations.__name__)
def test_inert_configs_are_those_that_nothing_reads(declarations: type[ConfigValues]) -> None:
    acted_on = {name for name, key in declarations.keys.items() if is_acted_on(declarations, key)}
    inert = {name for name, key in declarations.keys.items() if key.inert}
    assert not inert & acted_on, "these have an effect: remove `inert=True` from their declarations"
    assert inert | acted_on == declarations.keys.keys(), "these have no effect: declare them `inert=True`"
