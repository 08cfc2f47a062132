"""Values with schemas become rows that Arrow takes, whatever their fields are."""

import datetime
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from ottla.client.registry.protobuf import message_class
from ottla.pipelines.columns.messages import row_reader
from ottla.pipelines.columns.misfits import Misfit
from ottla.pipelines.columns.schema_types import ANYTHING, message_type
from ottla.pipelines.columns.shaping import shape_for
from ottla.schemas.protobuf.schema import ProtobufSchema

PROTO = """
syntax = "proto3";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Order {
  enum State { NEW = 0; PAID = 1; }
  message Line { string item = 1; optional int32 count = 2; }

  uint64 id = 1;
  State state = 2;
  double amount = 3;
  bytes seal = 4;
  repeated Line lines = 5;
  map<bool, Line> by_gift = 6;
  optional string note = 7;
  google.protobuf.Timestamp at = 8;
  google.protobuf.Duration took = 9;
  google.protobuf.Int64Value points = 10;
  oneof paid_by { string card = 11; int64 voucher = 12; }
  repeated State states = 13;
}
"""


@pytest.fixture(scope="module")
def order() -> type[Message]:
    return message_class(ProtobufSchema(PROTO), "Order")


def as_column(message: Any) -> Any:
    """Return what Arrow makes of a message that was written and read."""
    kind = message_type(message.DESCRIPTOR)
    shape = shape_for(kind)
    row = row_reader(message.DESCRIPTOR)(type(message).FromString(message.SerializeToString()))
    assert shape is not None
    return pa.array([shape(row)], kind).to_pylist()[0]


def test_a_message_without_anything_has_defaults_and_nulls(order: Any) -> None:
    assert as_column(order()) == {
        "id": 0,
        "state": "NEW",
        "amount": 0.0,
        "seal": b"",
        "lines": [],
        "by_gift": [],
        "note": None,
        "at": None,
        "took": None,
        "points": None,
        "card": None,
        "voucher": None,
        "states": [],
    }


def test_every_kind_of_field_is_read(order: Any) -> None:
    message = order(id=7, state=1, amount=float("inf"), seal=b"\xff", note="", voucher=0, states=[1, 0, 5])
    message.lines.add(item="a", count=0)
    message.lines.add(item="b")
    message.by_gift[True].item = "c"
    message.at.seconds, message.at.nanos = 1, 2_000_000
    message.took.seconds = 3
    message.points.value = -1
    found = as_column(message)
    assert (found["id"], found["state"], found["amount"], found["seal"]) == (7, "PAID", float("inf"), b"\xff")
    assert found["lines"] == [{"item": "a", "count": 0}, {"item": "b", "count": None}]
    assert found["by_gift"] == [("true", {"item": "c", "count": None})]
    assert (found["note"], found["card"], found["voucher"]) == ("", None, 0)
    assert found["at"] == datetime.datetime(1970, 1, 1, 0, 0, 1, 2000, tzinfo=datetime.UTC)
    assert found["took"] == {"seconds": 3, "nanos": 0}
    assert found["points"] == {"value": -1}
    # The schema has no name for 5.
    assert found["states"] == ["PAID", "NEW", "5"]


def test_a_number_that_spark_cannot_hold_does_not_fit(order: Any) -> None:
    with pytest.raises((OverflowError, pa.ArrowException)):
        as_column(order(id=2**63))


def test_what_fits_already_is_left_alone() -> None:
    assert shape_for(pa.struct([("a", pa.float64()), ("b", pa.list_(pa.bool_()))])) is None


def test_what_arrow_has_no_type_for_is_json() -> None:
    shape = shape_for(pa.struct([("a", ANYTHING), ("b", pa.map_(pa.string(), ANYTHING))]))
    assert shape is not None
    assert shape({"a": {"x": [1, None]}, "b": {1: "plain", "c": None, "d": 2.5}}) == {
        "a": '{"x": [1, null]}',
        "b": [("1", "plain"), ("c", None), ("d", "2.5")],
    }
    assert shape({"a": None}) == {"a": None}


def test_times_of_the_day_are_numbers_as_avro_counts_them() -> None:
    shape = shape_for(pa.struct([("a", pa.int32()), ("b", pa.int64()), ("c", pa.int64())]))
    assert shape is not None
    noon = datetime.time(12, 0, 0, 123456)
    assert shape({"a": noon, "b": noon, "c": 7}) == {"a": 43_200_123, "b": 43_200_123_456, "c": 7}


def test_what_has_a_text_of_its_own_is_that_text() -> None:
    shape = shape_for(pa.struct([("a", pa.string()), ("b", pa.string()), ("c", pa.string())]))
    assert shape is not None
    name = uuid.UUID(int=7)
    row = {"a": name, "b": decimal.Decimal("1.50"), "c": [b"x", datetime.date(2026, 1, 31)]}
    assert shape(row) == {"a": str(name), "b": "1.50", "c": '["eA==", "2026-01-31"]'}


def test_a_time_with_nanoseconds_is_cut_only_where_that_is_allowed(order: Any) -> None:
    message = order()
    message.at.nanos = 2_000_999
    with pytest.raises(Misfit, match="field 'at' has 2000999 nanoseconds"):
        row_reader(message.DESCRIPTOR)(message)
    assert row_reader(message.DESCRIPTOR, cuts_nanoseconds=True)(message)["at"].microsecond == 2_000
