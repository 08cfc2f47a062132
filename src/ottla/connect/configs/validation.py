"""Whether the configuration of a connector can be used, key by key, as the REST API answers it."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from ottla.connect.configs.keys import (
    NAMES_MAX,
    REQUIRED,
    Importance,
    InvalidValue,
    Key,
    Kind,
    a_class,
    a_pattern,
    parse,
    show,
    text_of,
)
from ottla.connect.configs.permissions import Permissions
from ottla.connect.configs.shared_keys import (
    CONNECTOR_CLASS,
    DLQ_TOPIC,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    NAME,
    PREDICATES,
    SINK_KEYS,
    SOURCE_KEYS,
    TOPICS,
    TOPICS_REGEX,
    TRANSFORMS,
    VALUE_CONVERTER,
    common_keys,
)
from ottla.connect.errors import RestError
from ottla.connect.plugins import ConnectorPlugin, Plugin, PluginKind, Plugins
from ottla.model.patterns import compile_pattern

_logger = logging.getLogger(__name__)
Given = Mapping[str, str | None]
_HINT: Final = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)
_FREE_PREFIXES: Final = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "topic.creation.",
    "transforms.",
    "predicates.",
)
_ALIKE: Final = 0.85
"""How much two names have in common if one is meant to be the other."""
_MODIFIERS: Final = {TRANSFORMS: PluginKind.TRANSFORMATION, PREDICATES: PluginKind.PREDICATE}


def connector_of(plugins: Plugins, config: Given) -> ConnectorPlugin:
    """Return the connector that a configuration names. Raises RestError."""
    name = config.get(CONNECTOR_CLASS)
    if not name:
        shown = ", ".join(f"{key}={show(value)}" for key, value in sorted(config.items()))
        raise RestError(400, f"Connector config {{{shown}}} contains no connector type")
    plugin = plugins.find_connector(name)
    if plugin is None:
        known = ", ".join(item.class_name for item in plugins.all if isinstance(item, ConnectorPlugin))
        raise RestError(
            400,
            f"Failed to find any class that implements Connector and which name matches {name}, available "
            f"connectors are: {known}",
        )
    return plugin


def plugin_keys(plugins: Plugins, plugin: Plugin, worker: Mapping[str, str]) -> tuple[Key, ...]:
    """Return all keys of a plugin, its own first."""
    if not isinstance(plugin, ConnectorPlugin):
        return plugin.keys
    own = {key.name for key in plugin.keys}
    general = (*common_keys(plugins, worker), *(SOURCE_KEYS if plugin.is_source else SINK_KEYS))
    return (*plugin.keys, *(key for key in general if key.name not in own))


def keys_of(plugins: Plugins, config: Given, worker: Mapping[str, str]) -> tuple[Key, ...]:
    """Return all keys that a configuration can have, in the order of their errors."""
    plugin = connector_of(plugins, config)
    general = (*common_keys(plugins, worker), *(SOURCE_KEYS if plugin.is_source else SINK_KEYS))
    modifiers = [key for name in _MODIFIERS for key in _modifier_keys(plugins, config, name)]
    names = {key.name for key in general}
    return (*general, *modifiers, *(key for key in plugin.keys if key.name not in names))


def _modifier_keys(plugins: Plugins, config: Given, name: str) -> Iterator[Key]:
    """Yield the keys of the transformations or predicates that a configuration names."""
    kind = _MODIFIERS[name]
    # More of them are refused by the key that names them.
    for alias in islice(dict.fromkeys(parse(name, Kind.LIST, config.get(name) or "")), NAMES_MAX):
        prefix = f"{name}.{alias}."
        group = f"{name.capitalize()}: {alias}"
        check = a_class(lambda text: plugins.find(text, kind) is not None)
        yield Key(f"{prefix}type", Kind.CLASS, f"The class of {alias}.", REQUIRED, group=group, check=check)
        if kind is PluginKind.TRANSFORMATION:
            doc = "The name of a predicate: only records for which it is true are changed."
            yield Key(f"{prefix}predicate", Kind.STRING, doc, None, Importance.MEDIUM, group)
            doc = "Whether records are changed for which the predicate is false instead."
            yield Key(f"{prefix}negate", Kind.BOOLEAN, doc, False, Importance.MEDIUM, group)
        plugin = plugins.find(config.get(f"{prefix}type") or "", kind)
        for key in plugin.keys if plugin is not None else ():
            yield replace(key, name=f"{prefix}{key.name}", group=group)


def find_errors(
    plugins: Plugins, config: Given, keys: tuple[Key, ...], permissions: Permissions
) -> dict[str, list[str]]:
    """Return what is wrong with a configuration, by key."""
    plugin = connector_of(plugins, config)
    errors = {key.name: found for key in keys if (found := key.errors(config))}
    if not plugin.is_source:
        _add(errors, _topic_errors(config))
    _add(errors, permissions.errors(config))
    _add(errors, _unsupported(plugin, config, {key.name for key in keys}))
    if not permissions.may_misspell:
        _add(errors, _misspelt(plugins, plugin, config, keys))
    if not errors:
        _add(errors, plugin.errors({key: value for key, value in config.items() if value is not None}))
    return errors


def _unsupported(plugin: ConnectorPlugin, config: Given, known: Collection[str]) -> dict[str, list[str]]:
    """Name the options of a Java connector that ask for what cannot be done here."""
    errors = {}
    for name, text in config.items():
        if not text or name in known or name in plugin.needless:
            continue
        prefixes = (
            prefix for prefix in plugin.unsupported if prefix.endswith(".") and name.startswith(prefix)
        )
        found = plugin.unsupported.get(name) or plugin.unsupported.get(next(prefixes, ""))
        if found is not None and text.strip().lower() not in map(str.lower, found.same):
            errors[name] = [f"{name} is not supported: {found.advice}"]
    return errors


def _misspelt(
    plugins: Plugins, plugin: ConnectorPlugin, config: Given, keys: Iterable[Key]
) -> dict[str, list[str]]:
    """Name the keys that nobody knows and that look like others."""
    known = {key.name for key in keys} | plugin.needless | _converter_keys(plugins, config)
    prefixes = tuple(name for name in plugin.unsupported if name.endswith("."))
    errors = {}
    for name, text in config.items():
        if not text or name in known or name in plugin.unsupported or name.startswith(prefixes or ("\0",)):
            continue
        near = get_close_matches(name, known, 1, cutoff=_ALIKE)
        if near:
            errors[name] = [f"{name} is not known: did you mean {near[0]}?"]
    return errors


def _converter_keys(plugins: Plugins, config: Given) -> set[str]:
    """Return the keys of the converters that a configuration names."""
    found = set()
    for name in (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER):
        plugin = plugins.find(config.get(name) or "")
        found |= {f"{name}.{key.name}" for key in plugin.keys} if plugin is not None else set()
    return found


def unknown_keys(plugin: ConnectorPlugin, config: Given, keys: Iterable[Key]) -> list[str]:
    """Return the keys of a configuration that have no effect, as nobody knows them."""
    known = {key.name for key in keys} | plugin.needless | plugin.unsupported.keys()
    prefixes = (*_FREE_PREFIXES, *plugin.open_prefixes)
    given = (name for name, text in config.items() if text)
    return sorted(name for name in given if name not in known and not name.startswith(prefixes))


def _add(errors: dict[str, list[str]], more: Mapping[str, list[str]]) -> None:
    for name, found in more.items():
        errors.setdefault(name, []).extend(found)


def _topic_errors(config: Given) -> dict[str, list[str]]:
    topics, regex = parse(TOPICS, Kind.LIST, config.get(TOPICS) or ""), config.get(TOPICS_REGEX) or ""
    if topics and regex:
        error = "topics and topics.regex are mutually exclusive options, but both are set."
        return {TOPICS: [error], TOPICS_REGEX: [error]}
    if not topics and not regex:
        error = "Must configure one of topics or topics.regex"
        return {TOPICS: [error], TOPICS_REGEX: [error]}
    try:
        a_pattern(TOPICS_REGEX, regex)
    except InvalidValue as cause:
        return {TOPICS_REGEX: [str(cause)]}
    dead_letters = (config.get(DLQ_TOPIC) or "").strip()
    if dead_letters and dead_letters in topics:
        error = (
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('topics={show(topics)}') consumed by the connector"
        )
        return {TOPICS: [error]}
    if dead_letters and regex and compile_pattern(regex).fullmatch(dead_letters):
        error = (
            f"The DLQ topic '{dead_letters}' may not be included in the regex matching the topics "
            f"('topics.regex={regex}') consumed by the connector"
        )
        return {TOPICS_REGEX: [error]}
    return {}


def validate(
    plugins: Plugins,
    config: Given,
    worker: Mapping[str, str],
    resolved: Given | None = None,
    permissions: Permissions | None = None,
) -> dict[str, Any]:
    """Check a configuration, and return the answer of the REST API.

    What is `resolved` is checked, and what was given is shown.
    """
    checked = config if resolved is None else resolved
    keys = keys_of(plugins, checked, worker)
    errors = find_errors(plugins, checked, keys, permissions or Permissions())
    answers = [_answer(key, config, errors) for key in keys]
    known = {key.name for key in keys}
    answers += [
        {"definition": None, "value": _value(name, config.get(name), found)}
        for name, found in errors.items()
        if name not in known
    ]
    return {
        "name": config[CONNECTOR_CLASS],
        "error_count": sum(len(found) for found in errors.values()),
        "groups": list(dict.fromkeys(key.group for key in keys if key.group is not None)),
        "configs": answers,
    }


def _answer(key: Key, config: Given, errors: Mapping[str, list[str]]) -> dict[str, Any]:
    given = config.get(key.name)
    value = given if given is not None or key.is_required else text_of(key.default)
    if key.kind is Kind.PASSWORD and given is not None:
        value = "[hidden]"
    return {"definition": key.definition(), "value": _value(key.name, value, errors.get(key.name, []))}


def _value(name: str, value: str | None, errors: list[str]) -> dict[str, Any]:
    return {"name": name, "value": value, "recommended_values": [], "errors": errors, "visible": True}


def check_config(
    plugins: Plugins, config: Given, worker: Mapping[str, str], permissions: Permissions | None = None
) -> ConnectorPlugin:
    """Raise RestError for a configuration that cannot be used. Returns its connector."""
    plugin = connector_of(plugins, config)
    keys = keys_of(plugins, config, worker)
    errors = find_errors(plugins, config, keys, permissions or Permissions())
    if errors:
        texts = [text for found in errors.values() for text in found]
        raise RestError(
            400,
            f"Connector configuration is invalid and contains the following {len(texts)} error(s):\n"
            + "".join(f"{text}\n" for text in texts)
            + _HINT,
        )
    unknown = unknown_keys(plugin, config, keys)
    if unknown:
        _logger.warning(
            "connector %s: these keys are not known and have no effect: %s",
            config.get(NAME),
            ", ".join(unknown),
        )
    return plugin
