"""Which schemas the records of a batch name, for topics that want them checked.

A topic with `ottla.value.schema.validation=true` takes only values that name a schema of the subject
`TOPIC-value`, by its id before the value or by its guid in a header. The same holds for keys, with
`TOPIC-key`. Values are not decoded: whether they fit their schema is for their readers to find out. Null
names no schema and is always taken.
"""

from typing import Final, NamedTuple

from ottla.records.batch import BatchView
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.compression import DecompressionLimits
from ottla.records.errors import RecordsError
from ottla.schemas.errors import UnreadableValue
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import DEFAULT_CONTEXT
from ottla.schemas.wire_format import Headers, decode_prefix, find_guid
from ottla.storage.config import LogConfig
from ottla.storage.errors import AppendError, RecordError
from ottla.wire.error_code import ErrorCode

NAMED_MAX: Final = 100
"""How many different schemas a batch may name. An answer lists at most as many."""


class Named(NamedTuple):
    """A schema that a record names: by id, by the text of its guid, or not at all."""

    is_key: bool
    schema: int | str | None

    def subject(self, topic: str) -> str:
        """Return the subject that must have it."""
        return f"{topic}-key" if self.is_key else f"{topic}-value"


def named_schemas(records: memoryview, config: LogConfig) -> dict[Named, int]:
    """Return the schemas that a sound batch names, each with the first record that does."""
    found: dict[Named, int] = {}
    limits = DecompressionLimits(bytes_max=config.decompressed_bytes_max)
    try:
        for index, (_, _, key, value, headers) in enumerate(
            iter_batch_record_tuples(BatchView(records), limits)
        ):
            if config.checks_key_schemas and key is not None:
                found.setdefault(Named(True, _schema_of(key, headers, is_key=True)), index)
            if config.checks_value_schemas and value is not None:
                found.setdefault(Named(False, _schema_of(value, headers, is_key=False)), index)
            if len(found) > NAMED_MAX:
                raise AppendError(
                    ErrorCode.INVALID_RECORD, f"a batch may name at most {NAMED_MAX} different schemas"
                )
    except RecordsError as error:
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return found


def _schema_of(data: bytes, headers: Headers, *, is_key: bool) -> int | str | None:
    try:
        guid = find_guid(headers, is_key=is_key) if headers else None
        return decode_prefix(data) if guid is None else guid[0]
    except UnreadableValue:
        return None


def find_refusal(topic: str, named: dict[Named, int], state: State) -> AppendError | None:
    """Return why a batch is refused, if it is."""
    errors = tuple(
        RecordError(index, _sentence(one, one.subject(topic)))
        for one, index in named.items()
        if not _is_registered(one.schema, one.subject(topic), state)
    )
    if not errors:
        return None
    return AppendError(
        ErrorCode.INVALID_RECORD,
        f"the records do not name schemas that are registered for topic {topic!r}: {errors[0].message}",
        errors,
    )


def _is_registered(schema: int | str | None, subject: str, state: State) -> bool:
    if isinstance(schema, str):
        schema = state.find_id(bytes.fromhex(schema.replace("-", "")), DEFAULT_CONTEXT)
    # Deleted versions count: their ids can still be looked up.
    return schema is not None and any(
        place.subject == subject for place in state.places(schema, DEFAULT_CONTEXT)
    )


def _sentence(one: Named, subject: str) -> str:
    part = "key" if one.is_key else "value"
    if one.schema is None:
        return f"the {part} names no schema: use a serializer that registers one under {subject!r}"
    return f"the schema {one.schema} of the {part} is not registered under {subject!r}"
