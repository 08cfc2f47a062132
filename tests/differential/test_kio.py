"""kio, an independent implementation of the protocol, finds our values in our bytes and writes the same ones.

kio shows milliseconds as timedeltas and datetimes, and zero ids as None; otherwise its fields come in the
order of ours. What its types cannot hold (times beyond the year 9999, say) is kept out of the comparison; all
of it is compared with Apache Kafka's own classes.
"""

import dataclasses
import datetime
import io
import uuid
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from tests.golden.schemas import load_schemas
from tests.property.messages import examples, message_values
from tests.support.declarations import all_messages, messages_and_versions

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import encode
from ottla.wire.layout import Field, layout_of

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

KIO_PATHS: dict[tuple[str, int], str] = {
    (path.rpartition(":")[2], version): path
    for versions in schema_name_map.values()
    for version, kinds in versions.items()
    for path in kinds.values()
}


@pytest.mark.parametrize(("name", "version"), sorted(KIO_PATHS))
@examples(3)
@given(data=st.data())
def test_kio_reads_and_writes_our_bytes(name: str, version: int, data: Any) -> None:
    message = data.draw(message_values(all_messages()[name], version, _what_kio_can_hold))
    ours = encode(message, version)
    kio_class = resolve_name(KIO_PATHS[name, version])
    theirs, size = entity_reader(kio_class)(ours, 0)
    assert size == len(ours)
    assert _plain(theirs) == _present(message, version)
    assert _written(kio_class, theirs) == ours


def test_kio_has_every_request_and_response() -> None:
    requests_and_responses = {
        (cls.__name__, version)
        for cls, version in messages_and_versions()
        if load_schemas()[cls.__name__].kind in ("request", "response", "header")
    }
    assert requests_and_responses <= KIO_PATHS.keys()


def _written(kio_class: Any, entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(kio_class)(buffer, entity)
    return buffer.getvalue()


def _what_kio_can_hold(field: Field) -> SearchStrategy[Any] | None:
    if field.kind == "int64":
        return st.integers(0, 1 << 40)
    return None


def _present(value: Any, version: int) -> Any:
    """Return a message as nested lists of the fields that the version has."""
    if hasattr(type(value), "__wire_fields__"):
        fields = zip(layout_of(type(value)), value, strict=True)
        return [_present(item, version) for field, item in fields if version in field.versions]
    if isinstance(value, tuple):
        return [_present(item, version) for item in value]
    if isinstance(value, Uuid):
        return None if value == ZERO_UUID else bytes(value)
    return bytes(value) if isinstance(value, memoryview) else value


def _plain(value: Any) -> Any:
    """Return an entity of kio's as nested lists of plain values."""
    if dataclasses.is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, uuid.UUID):
        return value.bytes if value.int else None
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    return value
