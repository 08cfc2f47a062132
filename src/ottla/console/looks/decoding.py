"""Keys and values as a schema registry knows them, with the reason where one cannot be decoded.

The registry's client waits for answers, so it works in a thread. It remembers all schemas that it has seen.
"""

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.client.errors import ClientError
from ottla.client.registry.avro import AvroDeserializer
from ottla.client.registry.client import Registered, RegistryClient, RegistryRefused, without_login
from ottla.client.registry.json_schema import JsonDeserializer
from ottla.client.registry.protobuf import ProtobufDeserializer
from ottla.records.codec import Headers
from ottla.schemas.errors import UnreadableValue
from ottla.schemas.wire_format import PREFIX_BYTES, decode_prefix, find_guid

_DECODED_BYTES_MAX: Final = 4 * 1024 * 1024
_TIMEOUT_S: Final = 5.0


class Decoded(NamedTuple):
    """What a registry made of bytes. Without a `text` there is a `reason`, or no schema was named."""

    text: str | None = None
    schema: str | None = None
    """Which schema: its type and id."""
    schema_id: int | None = None
    reason: str | None = None


NOT_NAMED: Final = Decoded()


class Decoding:
    """Decodes with one registry, or says why it cannot. Without a URL it only says what a value names."""

    def __init__(self, url: str | None) -> None:
        self.shown_url = None if url is None else ",".join(map(without_login, url.split(",")))
        self._registry = None if url is None else RegistryClient(url, timeout_s=_TIMEOUT_S)
        self._lock = threading.Lock()
        self._by_type: dict[tuple[str, bool], Any] = {}

    def close(self) -> None:
        """Close all connections."""
        if self._registry is not None:
            self._registry.close()

    async def decode_all(self, wanted: Sequence[tuple[bytes | None, Headers, bool]]) -> list[Decoded]:
        """Decode many: each is bytes, the headers of the record, and whether it is a key."""
        if not any(_may_name_schema(data, headers) for data, headers, _ in wanted):
            return [NOT_NAMED] * len(wanted)
        return await asyncio.to_thread(self._decode_each, wanted)

    def _decode_each(self, wanted: Sequence[tuple[bytes | None, Headers, bool]]) -> list[Decoded]:
        with self._lock:
            return [self._decode(data, headers, is_key) for data, headers, is_key in wanted]

    def _decode(self, data: bytes | None, headers: Headers, is_key: bool) -> Decoded:
        if data is None or not _may_name_schema(data, headers):
            return NOT_NAMED
        schema_id: int | None = None
        named: int | str
        try:
            by_header = find_guid(headers, is_key=is_key)
            named = decode_prefix(data) if by_header is None else by_header[0]
            schema_id = named if isinstance(named, int) else None
        except UnreadableValue as error:
            return Decoded(reason=f"the schema cannot be found: {error}")
        what = f"schema {named}"
        if self._registry is None:
            return Decoded(
                None, what, schema_id, f"it begins as if it had {what}: start the console with --registry URL"
            )
        if len(data) > _DECODED_BYTES_MAX:
            return Decoded(None, what, schema_id, f"it is larger than {_DECODED_BYTES_MAX >> 20} MiB")
        try:
            found = self._registry.by_id(named) if isinstance(named, int) else self._registry.by_guid(named)
            what = f"{found.schema_type.title()} schema {named}"
            return Decoded(self._as_json(found, data, headers, is_key), what, schema_id)
        except RegistryRefused as error:
            return Decoded(
                None, what, schema_id, f"the registry at {self.shown_url} does not give {what}: {error}"
            )
        except ClientError as error:
            return Decoded(None, what, schema_id, f"{what} could not be asked for: {error}")
        except UnreadableValue as error:
            return Decoded(None, what, schema_id, f"the bytes do not fit {what}: {error}")
        except Exception as error:
            # Libraries of three formats raise what they like on bad bytes.
            return Decoded(
                None, what, schema_id, f"the bytes do not fit {what}: {type(error).__name__} {error}"
            )

    def _as_json(self, schema: Registered, data: bytes, headers: Headers, is_key: bool) -> str:
        place = schema.schema_type, is_key
        if place not in self._by_type:
            kinds = {"AVRO": AvroDeserializer, "JSON": JsonDeserializer, "PROTOBUF": ProtobufDeserializer}
            self._by_type[place] = kinds[schema.schema_type](self._registry, is_key=is_key)
        value = self._by_type[place].with_headers("", data, headers)
        return _json(value)


def _may_name_schema(data: bytes | None, headers: Headers) -> bool:
    if data is None:
        return False
    if len(data) >= PREFIX_BYTES and data[0] == 0:
        return True
    return any(name.startswith("__") and name.endswith("_schema_id") for name, _ in headers)


def _json(value: Any) -> str:
    from google.protobuf.message import Message

    if isinstance(value, Message):
        from google.protobuf.json_format import MessageToDict

        value = MessageToDict(value, preserving_proto_field_name=True)
    return json.dumps(value, default=_shown, ensure_ascii=False)


def _shown(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
