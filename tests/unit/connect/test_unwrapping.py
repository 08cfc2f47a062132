"""Changes as rows. What is expected here is what Debezium 3.3.1 answers to the same records."""

from typing import Any

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.data.record import Header, Record
from ottla.connect.data.schema import INT32, INT64, STRING, Schema, optional, struct

ROW = struct({"id": INT32, "a": optional(STRING)}, name="p.t.Value", is_optional=True)
SOURCE = struct({"table": STRING, "ts_ms": INT64, "lsn": optional(INT64)})
ENVELOPE = struct({"before": ROW, "after": ROW, "source": SOURCE, "op": STRING}, name="p.t.Envelope")
KEY = struct({"id": INT32})
ONE, CHANGED = {"id": 1, "a": "x"}, {"id": 1, "a": "y"}
TOMBSTONE = "tombstone"
MODE = "delete_tombstone_handling_mode"


def change(kind: str | None, before: Any, after: Any, schema: Schema | None = ENVELOPE) -> Record:
    source = {"table": "t", "ts_ms": 7, "lsn": 9}
    value = {"before": before, "after": after, "source": source, "op": kind}
    if kind is None:
        return Record("p.t", None, KEY, {"id": 1}, None, None)
    return Record("p.t", None, KEY, {"id": 1}, schema, value)


def apply(record: Record, **config: str) -> Record | None:
    plugin = all_plugins().find("ExtractNewRecordState")
    assert plugin is not None
    given = {key.replace("_", "."): value for key, value in config.items()}
    assert [error for key in plugin.keys for error in key.errors(given)] == []
    made: Record | None = plugin.make(given).apply(record)
    return made


CHANGES = {
    "created": change("c", None, ONE),
    "updated": change("u", ONE, CHANGED),
    "read": change("r", None, ONE),
    "deleted": change("d", ONE, None),
    "emptied": change("t", None, None),
    "tombstone": change(None, None, None),
}
ROWS = {"created": ONE, "updated": CHANGED, "read": ONE}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {**ROWS, "deleted": TOMBSTONE}),
        ({MODE: "tombstone"}, {**ROWS, "deleted": TOMBSTONE}),
        ({MODE: "delete-to-tombstone"}, {**ROWS, "deleted": TOMBSTONE}),
        ({MODE: "drop"}, ROWS),
        # What versions before 3 had instead.
        ({"delete_handling_mode": "drop", "drop_tombstones": "true"}, ROWS),
        ({"drop_tombstones": "false"}, {**ROWS, "deleted": TOMBSTONE}),
        ({"delete_handling_mode": "none"}, {**ROWS, "deleted": TOMBSTONE}),
    ],
)
def test_a_change_becomes_its_row_or_a_tombstone(config: dict[str, str], expected: dict[str, Any]) -> None:
    found = {}
    for name, record in CHANGES.items():
        made = apply(record, **config)
        if made is not None:
            assert (made.topic, made.key, made.key_schema) == ("p.t", {"id": 1}, KEY)
            found[name] = TOMBSTONE if made.value is None else made.value
            fields = {"id": INT32, "a": optional(STRING)}
            assert made.value_schema == (None if made.value is None else struct(fields, name="p.t.Value"))
    assert found == expected


@pytest.mark.parametrize(
    ("config", "keeps_tombstone"),
    [
        ({MODE: "rewrite"}, False),
        ({MODE: "rewrite-with-tombstone"}, True),
        ({"delete_handling_mode": "rewrite"}, False),
        ({"delete_handling_mode": "rewrite", "drop_tombstones": "false"}, True),
    ],
)
def test_a_deletion_becomes_the_row_before_it(config: dict[str, str], keeps_tombstone: bool) -> None:
    found = {name: apply(record, **config) for name, record in CHANGES.items()}
    rows = {name: None if made is None else made.value for name, made in found.items()}
    kept = {name: {**row, "__deleted": "false"} for name, row in ROWS.items()}
    assert rows == {**kept, "deleted": {**ONE, "__deleted": "true"}, "emptied": None, "tombstone": None}
    assert (found["tombstone"] is not None) == keeps_tombstone
    assert apply(change("d", None, None), **config) is None


def test_what_a_change_says_of_itself_is_added() -> None:
    made = apply(
        CHANGES["created"],
        add_fields="op,table,source.ts_ms,lsn:L,nosuch,transaction.id",
        add_fields_prefix="p_",
        add_headers="op,source.lsn:x,nosuch",
    )
    assert made is not None
    assert made.value == {**ONE, "p_op": "c", "p_table": "t", "p_source_ts_ms": 7, "p_L": 9}
    assert made.headers == (Header("__op", STRING, "c"), Header("__x", optional(INT64), 9))
    assert made.value_schema is not None
    added = {item.name: item.schema for item in made.value_schema.fields[2:]}
    text, number = optional(STRING), optional(INT64)
    assert added == {"p_op": text, "p_table": text, "p_source_ts_ms": number, "p_L": number}
    # The mark of a deletion stands before what was asked for.
    marked = apply(CHANGES["deleted"], add_fields="op", **{MODE: "rewrite"})
    assert marked is not None
    assert list(marked.value) == ["id", "a", "__deleted", "__op"]
    deleted = apply(CHANGES["deleted"], add_headers="op")
    assert deleted is not None
    assert (deleted.value, deleted.headers) == (None, (Header("__op", STRING, "d"),))


def test_a_field_names_the_topic() -> None:
    topics = [
        made.topic
        for name in ("created", "updated", "deleted")
        if (made := apply(CHANGES[name], route_by_field="a")) is not None
    ]
    assert topics == ["x", "y", "x"]
    unnamed = apply(change("c", None, {"id": 1, "a": None}), route_by_field="a")
    assert unnamed is not None
    assert unnamed.topic == "p.t"


def test_what_is_no_change_passes_and_a_change_without_a_schema_is_one() -> None:
    plain = Record("p.t", None, None, None, struct({"op": STRING}), {"op": "c"})
    assert apply(plain) is plain
    text = Record("p.t", None, None, None, STRING, "c")
    assert apply(text) is text
    bare = apply(change("c", None, ONE, schema=None), add_fields="op")
    assert bare is not None
    assert (bare.value_schema, bare.value) == (None, {**ONE, "__op": "c"})
