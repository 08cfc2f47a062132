"""Converters and transformations of one connector, put together by its configuration."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.configs.keys import Kind, parse
from ottla.connect.configs.shared_keys import (
    CONNECTOR_CLASS,
    HEADER_CONVERTER,
    KEY_CONVERTER,
    TRANSFORMS,
    VALUE_CONVERTER,
)
from ottla.connect.converters.converter import Converter, HeaderConverter
from ottla.connect.converters.plain import ValueHeaderConverter
from ottla.connect.data.record import Record
from ottla.connect.data.schema import Schema
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, PluginKind, Plugins
from ottla.connect.running.tolerance import Skipped, Stage, Tolerance

_SCHEMAS_MAX: Final = 1000
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True)
class SerializedRecord:
    """A record as a producer takes it."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class _Step:
    """A transformation, and for which records it is meant."""

    class_name: str
    transformation: Any
    predicate: Any
    is_negated: bool

    def apply(self, record: Record) -> Record | None:
        if self.predicate is not None and self.predicate.test(record) is self.is_negated:
            return record
        changed: Record | None = self.transformation.apply(record)
        return changed


class _Changed:
    """The schemas that transformations make: one object for all records of a schema.

    Transformations make a schema for each record, and converters do much for each new one.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[Schema | None, Schema]] = {}

    def same(self, before: Schema | None, after: Schema | None) -> Schema | None:
        if after is None or after is before:
            return after
        found = self._made.get(id(before))
        if found is not None and found[0] is before and found[1] == after:
            return found[1]
        if len(self._made) >= _SCHEMAS_MAX:
            self._made.clear()
        self._made[id(before)] = before, after
        return after


class Conversion:
    """The way of a record through a connector, in either direction."""

    def __init__(
        self, plugins: Plugins, config: Config, defaults: Mapping[str, str], tolerance: Tolerance
    ) -> None:
        self._tolerance = tolerance
        self._connector_class = config.get(CONNECTOR_CLASS, "")
        self._steps = _steps(plugins, config)
        self._changed_keys = _Changed()
        self._changed_values = _Changed()
        self._key_class, self._key = _converter(plugins, config, defaults, KEY_CONVERTER)
        self._value_class, self._value = _converter(plugins, config, defaults, VALUE_CONVERTER)
        self._header_class, self._header = _header_converter(plugins, config, defaults)
        self._waits = any(getattr(item, "waits", False) for item in (self._key, self._value))

    async def for_each(self, records: Sequence[Given], convert: Callable[[Given], Made | None]) -> list[Made]:
        """Convert records, without those that are left out.

        A converter may wait for a schema registry. Then the other connectors of the worker do not wait.
        """
        if self._waits:
            return await asyncio.to_thread(_convert_all, records, convert)
        return _convert_all(records, convert)

    def transform(self, record: Record) -> Record | None:
        """Return what the transformations make of a record. None: it is dropped. Raises Skipped."""
        if record.problem is not None:
            self._tolerance.report(Stage.TASK_POLL, self._connector_class, record.origin, record.problem)
            raise Skipped from record.problem
        current: Record | None = record
        for step in self._steps:
            if current is None:
                return None
            current = self._tolerance.attempt(
                Stage.TRANSFORMATION,
                step.class_name,
                record.origin,
                partial(step.apply, current),
            )
        if current is not None and current is not record:
            current.key_schema = self._changed_keys.same(record.key_schema, current.key_schema)
            current.value_schema = self._changed_values.same(record.value_schema, current.value_schema)
        return current

    def serialize(self, record: Record) -> SerializedRecord:
        """Return a record as bytes. Raises Skipped."""
        attempt = self._tolerance.attempt
        headers = tuple(
            (
                header.name,
                attempt(
                    Stage.HEADER_CONVERTER,
                    self._header_class,
                    None,
                    partial(self._header.to_bytes, header),
                ),
            )
            for header in record.headers
        )
        key = attempt(
            Stage.KEY_CONVERTER,
            self._key_class,
            None,
            lambda: self._key.to_bytes(record.topic, record.key_schema, record.key),
        )
        value = attempt(
            Stage.VALUE_CONVERTER,
            self._value_class,
            None,
            lambda: self._value.to_bytes(record.topic, record.value_schema, record.value),
        )
        return SerializedRecord(record.topic, record.partition, key, value, record.timestamp_ms, headers)

    def deserialize(self, origin: ConsumerRecord) -> Record:
        """Return a record of a topic as values. Raises Skipped."""
        attempt = self._tolerance.attempt
        key_schema, key = attempt(
            Stage.KEY_CONVERTER,
            self._key_class,
            origin,
            lambda: self._key.from_bytes(origin.topic, origin.key),
        )
        value_schema, value = attempt(
            Stage.VALUE_CONVERTER,
            self._value_class,
            origin,
            lambda: self._value.from_bytes(origin.topic, origin.value),
        )
        headers = tuple(
            attempt(
                Stage.HEADER_CONVERTER,
                self._header_class,
                origin,
                partial(self._header.from_bytes, name, data),
            )
            for name, data in origin.headers or ()
        )
        return Record(
            origin.topic,
            origin.partition,
            key_schema,
            key,
            value_schema,
            value,
            origin.timestamp_ms,
            headers,
            origin=origin,
        )


def _convert_all(records: Sequence[Given], convert: Callable[[Given], Made | None]) -> list[Made]:
    converted = []
    for record in records:
        try:
            made = convert(record)
        except Skipped:
            continue
        if made is not None:
            converted.append(made)
    return converted


def _converter(
    plugins: Plugins, config: Config, defaults: Mapping[str, str], name: str
) -> tuple[str, Converter]:
    # A connector that names a converter does not get the worker's settings of another one.
    given = config if config.get(name) else defaults
    plugin = plugins.find(given[name], PluginKind.CONVERTER)
    if plugin is None:
        raise ConnectError(f"{name} is {given[name]!r}: there is no such converter")
    own = _below(given, f"{name}.") | {"is.key": str(name == KEY_CONVERTER).lower()}
    return plugin.class_name, plugin.make(own)


def _header_converter(
    plugins: Plugins, config: Config, defaults: Mapping[str, str]
) -> tuple[str, HeaderConverter]:
    given = config if config.get(HEADER_CONVERTER) else defaults
    kinds = (PluginKind.HEADER_CONVERTER, PluginKind.CONVERTER)
    plugin = plugins.find(given[HEADER_CONVERTER], *kinds)
    if plugin is None:
        raise ConnectError(f"header.converter is {given[HEADER_CONVERTER]!r}: there is no such converter")
    made = plugin.make(_below(given, f"{HEADER_CONVERTER}."))
    is_plain = plugin.kind is PluginKind.CONVERTER
    return plugin.class_name, ValueHeaderConverter(made) if is_plain else made


def _steps(plugins: Plugins, config: Config) -> list[_Step]:
    steps = []
    for alias in parse(TRANSFORMS, Kind.LIST, config.get(TRANSFORMS, "")):
        own = _below(config, f"{TRANSFORMS}.{alias}.")
        plugin = plugins.find(own.get("type", ""), PluginKind.TRANSFORMATION)
        if plugin is None:
            raise ConnectError(f"transformation {alias!r} has no class that is known here")
        predicate = None
        if own.get("predicate"):
            below = _below(config, f"predicates.{own['predicate']}.")
            predicate_plugin = plugins.find(below.get("type", ""), PluginKind.PREDICATE)
            if predicate_plugin is None:
                raise ConnectError(f"predicate {own['predicate']!r} has no class that is known here")
            predicate = predicate_plugin.make(below)
        is_negated = own.get("negate", "false").lower() == "true"
        steps.append(_Step(plugin.class_name, plugin.make(own), predicate, is_negated))
    return steps


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
