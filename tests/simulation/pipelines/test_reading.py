"""Records of a topic as columns, between moments or offsets, beside a simulated node."""

import datetime
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.simulation.pipelines.world import World

from ottla.pipelines.columns.json_values import JsonColumns
from ottla.pipelines.columns.misfits import decode_rows
from ottla.pipelines.reading import CannotRead, Records, _position, read_records

KIND = pa.struct([("id", pa.int32()), ("amount", pa.decimal128(10, 2))])


def _json(values: Any) -> Any:
    return decode_rows(KIND, JsonColumns(KIND).row, values)


def _filled(world: World, name: str) -> str:
    topic = world.create(name, 2)
    world.produce(topic, b'{"id":1,"amount":0.10}', b'{"id":2,"amount":1e400}')
    world.produce(topic, b'{"id":3,"amount":2}', partition=1)
    return topic


def test_all_that_is_there_is_read_as_text(world: World, name: str) -> None:
    found = read_records(world.link, _filled(world, name), None, None)
    assert len(found) == 3
    rows = found.to_arrow().to_pylist()
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, 0), (0, 1), (1, 0)]
    assert rows[0]["value"] == '{"id":1,"amount":0.10}'
    assert found.to_arrow().column_names == ["key", "value", "partition", "offset", "timestamp"]
    assert pa.table(found).equals(found.to_arrow()), "it is a stream of Arrow itself"


def test_fields_of_values_are_columns_and_what_does_not_fit_says_why(world: World, name: str) -> None:
    found = read_records(world.link, _filled(world, name), None, None, decode=(KIND, _json)).to_arrow()
    assert found.column_names == ["id", "amount", "_key", "_partition", "_offset", "_timestamp", "_fault"]
    assert found.column("amount").to_pylist() == [Decimal("0.10"), None, Decimal("2.00")]
    assert [fault is None for fault in found.column("_fault").to_pylist()] == [True, False, True]


def test_offsets_bound_what_is_read_and_what_is_beyond_the_ends_is_not_waited_for(
    world: World, name: str
) -> None:
    topic = _filled(world, name)

    def offsets(begin: Any, end: Any) -> list[tuple[int, int]]:
        table = read_records(world.link, topic, begin, end).to_arrow()
        return [(row["partition"], row["offset"]) for row in table.to_pylist()]

    assert offsets({0: 1}, None) == [(0, 1), (1, 0)]
    assert offsets({0: 0, 1: 5}, {0: 1}) == [(0, 0)]
    assert offsets(None, {0: 100, 1: 0}) == [(0, 0), (0, 1)]
    assert offsets({0: 2, 1: 1}, None) == []


def test_times_bound_what_is_read(world: World, name: str) -> None:
    topic = _filled(world, name)
    rows = read_records(world.link, topic, None, None).to_arrow().column("timestamp").to_pylist()
    latest_ms = int(max(rows).timestamp() * 1000)
    assert len(read_records(world.link, topic, latest_ms + 1, None)) == 0
    assert len(read_records(world.link, topic, 0, latest_ms + 1)) == 3
    assert len(read_records(world.link, topic, 0, int(min(rows).timestamp() * 1000))) == 0


def test_what_cannot_be_read_is_said(world: World, name: str) -> None:
    with pytest.raises(CannotRead, match="there is no topic"):
        read_records(world.link, f"{name}-other", None, None)
    topic = world.create(name)
    world.produce(topic, b"\xff")
    with pytest.raises(CannotRead, match="use values='bytes'"):
        read_records(world.link, topic, None, None)
    assert read_records(world.link, topic, None, None, values="bytes").to_arrow()["value"].to_pylist() == [
        b"\xff"
    ]
    with pytest.raises(CannotRead, match="no partition 7, only 0 to 0"):
        read_records(world.link, topic, {7: 0}, None)
    with pytest.raises(CannotRead, match="use 'text' or 'bytes'"):
        read_records(world.link, topic, None, None, values="json")


def test_a_notebook_shows_a_table_of_the_first_rows(world: World, name: str) -> None:
    topic = world.create(name)
    world.produce(topic, *(b"<b>%d" % number for number in range(25)))
    shown = read_records(world.link, topic, None, None)._repr_html_()
    assert "<td>&lt;b&gt;19</td>" in shown
    assert "<td>&lt;b&gt;20</td>" not in shown
    assert "<p>5 more records</p>" in shown


NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("moment", "seconds_ago"),
    [
        ("2 hours", 7_200),
        ("90s", 90),
        ("1.5 min", 90),
        ("1 Week", 604_800),
        (datetime.timedelta(days=1), 86_400),
        ("2026-01-31T11:59:59Z", 1),
        (datetime.datetime(2026, 1, 31, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))), 0),
    ],
)
def test_a_moment_is_a_time_or_how_long_ago(moment: Any, seconds_ago: int) -> None:
    assert _position(moment, NOW) == int((NOW.timestamp() - seconds_ago) * 1000)


def test_what_is_no_moment_is_refused() -> None:
    for text in ("yesterday", "2 fortnights", ""):
        with pytest.raises(CannotRead, match="is no moment: write a time"):
            _position(text, NOW)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(CannotRead, match="polars is not installed: pip install polars"):
        Records(pa.table({"a": [1]})).to_polars()


def test_pandas_keeps_numbers_as_they_are() -> None:
    table = pa.table({"n": pa.array([2**62 + 1, None]), "d": pa.array([Decimal("0.10"), None])})
    frame = Records(table).to_pandas()
    assert frame["n"][0] == 2**62 + 1
    assert frame["d"][0] == Decimal("0.10")
