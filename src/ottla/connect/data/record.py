"""A record on its way through a connector."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.data.schema import Schema
from ottla.connect.errors import DataError


class Header(NamedTuple):
    """A header with the schema of its value."""

    name: str
    schema: Schema | None
    value: Any


@dataclass(slots=True)
class Record:
    """A record: where it goes or came from, its key and value with their schemas.

    Of a source it also says where in the source it was. Of a sink it has the record of the topic. With a
    problem it stands for a record that the source could not make.
    """

    topic: str
    partition: int | None
    key_schema: Schema | None
    key: Any
    value_schema: Schema | None
    value: Any
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    origin: ConsumerRecord | None = None
    problem: DataError | None = None
