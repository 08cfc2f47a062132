"""Records that were transformed: equal schemas are one object, so that converters know them again."""

from ottla.connect.catalog import all_plugins
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT32, STRING, Schema, struct
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.tolerance import Tolerance
from ottla.connect.settings import WorkerSettings

CONFIG = {
    "transforms": "a,b",
    "transforms.a.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.a.static.field": "origin",
    "transforms.a.static.value": "here",
    "transforms.b.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.b.fields": "id",
}


def _transformed(conversion: Conversion, schema: Schema, number: int) -> Record:
    value = {item.name: number for item in schema.fields}
    record = conversion.transform(Record("t", None, None, None, schema, value))
    assert record is not None
    return record


def test_equal_schemas_of_transformed_records_are_one_object() -> None:
    conversion = Conversion(all_plugins(), CONFIG, WorkerSettings().defaults, Tolerance(CONFIG, "c", 0))
    orders, lines = struct({"id": INT32}, name="orders"), struct({"id": INT32, "n": INT32}, name="lines")

    first, other, second = (
        _transformed(conversion, schema, number) for number, schema in enumerate((orders, lines, orders))
    )

    assert first.value == {"id": 0, "origin": "here"}
    assert second.value_schema is first.value_schema
    assert second.key_schema is first.key_schema
    assert other.value_schema is not first.value_schema
    added = second.value_schema.field_named("origin") if second.value_schema else None
    assert added is not None
    assert added.schema.type is STRING.type
