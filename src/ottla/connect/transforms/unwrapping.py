"""Debezium's transformation of a change into the row itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ottla.connect.configs.keys import Importance, Key, Kind, one_of, parse
from ottla.connect.data.record import Header, Record
from ottla.connect.data.schema import OPTIONAL_STRING, Field, Schema, Type, infer, optional
from ottla.connect.plugins import Config, Plugin, PluginKind

_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM
_ENVELOPE: Final = ".Envelope"
_DELETED: Final = "deleted"
_DROP, _TOMBSTONE, _REWRITE = "drop", "tombstone", "rewrite"
_REWRITE_WITH_TOMBSTONE, _DELETE_TO_TOMBSTONE = "rewrite-with-tombstone", "delete-to-tombstone"
_MODES: Final = (_DROP, _TOMBSTONE, _REWRITE, _REWRITE_WITH_TOMBSTONE, _DELETE_TO_TOMBSTONE)
_EARLIER_MODES: Final = ("drop", "rewrite", "none")


class _Fact(NamedTuple):
    """Something that a change says of itself: where it is, and what it becomes."""

    part: str | None
    """The struct that has it. None: the change itself, or else its source."""
    field: str
    name: str

    @classmethod
    def parse(cls, text: str, prefix: str) -> "_Fact":
        place, _, alias = text.partition(":")
        part, has_part, field = place.rpartition(".")
        name = alias or (f"{part}_{field}" if has_part else field)
        return cls(part or None, field, f"{prefix}{name}")

    def find(self, schema: Schema | None, change: Mapping[str, Any]) -> tuple[Schema, Any] | None:
        """Return it with its schema. None: the change does not say it."""
        for part in (self.part,) if self.part is not None else (None, "source"):
            within = change if part is None else change.get(part)
            if isinstance(within, Mapping) and self.field in within:
                value = within[self.field]
                declared = _declared(schema, part, self.field)
                return (infer(value) if declared is None else declared), value
        return None


def _declared(schema: Schema | None, *path: str | None) -> Schema | None:
    for name in path:
        if name is not None and schema is not None:
            found = schema.field_named(name)
            schema = None if found is None else found.schema
    return schema


class ExtractNewRecordState:
    """Replaces a change by the row as it is after it. Everything else passes."""

    def __init__(self, config: Config) -> None:
        self._mode = _mode(config)
        field_prefix = config.get("add.fields.prefix", "__")
        self._fields = _facts(config, "add.fields", field_prefix)
        self._headers = _facts(config, "add.headers", config.get("add.headers.prefix", "__"))
        self._deleted = f"{field_prefix}{_DELETED}"
        self._route_by = config.get("route.by.field", "")

    def apply(self, record: Record) -> Record | None:
        """Return the record with its row, or None if it is left out."""
        if record.value is None:
            return record if self._mode == _REWRITE_WITH_TOMBSTONE else None
        change = record.value
        if not _is_change(record.value_schema, change):
            return record
        more = [Header(fact.name, *found) for fact, found in self._found(self._headers, record)]
        with_headers = replace(record, headers=(*record.headers, *more))
        before, after = change.get("before"), change.get("after")
        if after is not None:
            return self._with_row(with_headers, "after", after, is_deleted=False)
        # A table that was emptied has no row either.
        if change["op"] != "d" or self._mode == _DROP:
            return None
        if self._mode in (_TOMBSTONE, _DELETE_TO_TOMBSTONE):
            return replace(self._routed(with_headers, before or {}), value_schema=None, value=None)
        return None if before is None else self._with_row(with_headers, "before", before, is_deleted=True)

    def _found(self, facts: Sequence[_Fact], record: Record) -> Iterator[tuple[_Fact, tuple[Schema, Any]]]:
        for fact in facts:
            found = fact.find(record.value_schema, record.value)
            if found is not None:
                yield fact, found

    def _with_row(self, record: Record, side: str, row: Mapping[str, Any], *, is_deleted: bool) -> Record:
        added: dict[str, tuple[Schema, Any]] = {}
        if self._mode in (_REWRITE, _REWRITE_WITH_TOMBSTONE):
            added[self._deleted] = (OPTIONAL_STRING, str(is_deleted).lower())
        added |= {fact.name: found for fact, found in self._found(self._fields, record)}
        cells = {**row, **{name: value for name, (_, value) in added.items()}}
        schema = _declared(record.value_schema, side)
        if schema is not None:
            more = tuple(Field(name, optional(fact)) for name, (fact, _) in added.items())
            schema = replace(schema, is_optional=False, fields=(*schema.fields, *more))
        return replace(self._routed(record, row), value_schema=schema, value=cells)

    def _routed(self, record: Record, row: Mapping[str, Any]) -> Record:
        topic = row.get(self._route_by) if self._route_by else None
        return record if topic is None else replace(record, topic=str(topic))


def _is_change(schema: Schema | None, value: Any) -> bool:
    if schema is not None:
        return schema.type is Type.STRUCT and (schema.name or "").endswith(_ENVELOPE)
    return isinstance(value, Mapping) and {"op", "before", "after"} <= value.keys()


def _mode(config: Config) -> str:
    """Return what becomes of deletions. Two options said it before there was one."""
    if "delete.tombstone.handling.mode" in config:
        return config["delete.tombstone.handling.mode"]
    earlier = config.get("delete.handling.mode")
    keeps_tombstones = config.get("drop.tombstones", "true").lower() == "false"
    if earlier is None and "drop.tombstones" not in config:
        return _TOMBSTONE
    if earlier == "rewrite":
        return _REWRITE_WITH_TOMBSTONE if keeps_tombstones else _REWRITE
    if earlier == "none":
        return _DELETE_TO_TOMBSTONE
    return _TOMBSTONE if keeps_tombstones else _DROP


def _facts(config: Config, name: str, prefix: str) -> Sequence[_Fact]:
    return [_Fact.parse(text, prefix) for text in parse(name, Kind.LIST, config.get(name, ""))]


PLUGINS: Final = (
    Plugin(
        "io.debezium.transforms.ExtractNewRecordState",
        PluginKind.TRANSFORMATION,
        ExtractNewRecordState,
        (
            Key(
                "delete.tombstone.handling.mode",
                Kind.STRING,
                "What becomes of a deletion and of the record without a value that follows. tombstone and "
                "delete-to-tombstone: one record without a value. drop: nothing. rewrite: the row before, "
                "with __deleted. rewrite-with-tombstone: the same, and a record without a value.",
                _TOMBSTONE,
                _MEDIUM,
                check=one_of(*_MODES),
            ),
            Key(
                "delete.handling.mode",
                Kind.STRING,
                "The same of earlier versions, for the deletion.",
                None,
                _LOW,
                check=one_of(*_EARLIER_MODES),
            ),
            Key(
                "drop.tombstones",
                Kind.BOOLEAN,
                "The same of earlier versions, for the record that follows.",
                None,
                _LOW,
            ),
            Key(
                "add.fields",
                Kind.LIST,
                "What is added to the row: op, source.ts_ms, table... With a colon: its name.",
                [],
                _LOW,
            ),
            Key("add.fields.prefix", Kind.STRING, "What names of added fields begin with.", "__", _LOW),
            Key("add.headers", Kind.LIST, "What is added as a header, as in add.fields.", [], _LOW),
            Key("add.headers.prefix", Kind.STRING, "What names of added headers begin with.", "__", _LOW),
            Key("route.by.field", Kind.STRING, "The field of the row that names the topic.", "", _LOW),
        ),
    ),
)
