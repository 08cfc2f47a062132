"""Values as a registry knows them: what `ottla consume --registry` prints instead of bytes."""

import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from ottla.cli.schemas.options import open_registry

if TYPE_CHECKING:
    from ottla.cli.records.templates import Printable


async def decoded(
    records: "AsyncGenerator[Printable, None]", url: str, user: str | None
) -> "AsyncGenerator[Printable, None]":
    """Pass records on with keys and values as JSON, where the registry knows their schemas."""
    with open_registry(url, user) as registry:
        key, value = _Decoder(registry, is_key=True), _Decoder(registry, is_key=False)
        try:
            async for record in records:
                yield record._replace(
                    key=key.decode(record.key, record.headers),
                    value=value.decode(record.value, record.headers),
                )
        finally:
            await records.aclose()


class _Decoder:
    def __init__(self, registry: Any, *, is_key: bool) -> None:
        from ottla.client.registry.avro import AvroDeserializer
        from ottla.client.registry.json_schema import JsonDeserializer
        from ottla.client.registry.protobuf import ProtobufDeserializer

        self._registry = registry
        self._is_key = is_key
        self._by_type = {
            "AVRO": AvroDeserializer(registry, is_key=is_key),
            "JSON": JsonDeserializer(registry, is_key=is_key),
            "PROTOBUF": ProtobufDeserializer(registry, is_key=is_key),
        }
        self._types: dict[int | str, str | None] = {}

    def decode(self, data: bytes | None, headers: Any) -> bytes | None:
        """Return a value as JSON, or as it is if no schema of it is known."""
        from ottla.schemas.errors import UnreadableValue
        from ottla.schemas.wire_format import decode_prefix, find_guid

        if data is None:
            return None
        try:
            named = find_guid(headers, is_key=self._is_key)
            kind = self._type(decode_prefix(data) if named is None else named[0])
            if kind is None:
                return data
            return _as_json(self._by_type[kind].with_headers("", data, headers))
        except UnreadableValue:
            return data

    def _type(self, named: int | str) -> str | None:
        from ottla.client.registry.client import RegistryRefused

        if named not in self._types:
            try:
                found = (
                    self._registry.by_id(named) if isinstance(named, int) else self._registry.by_guid(named)
                )
                self._types[named] = found.schema_type
            except RegistryRefused:
                self._types[named] = None
        return self._types[named]


def _as_json(value: Any) -> bytes:
    from google.protobuf.message import Message

    if isinstance(value, Message):
        from google.protobuf.json_format import MessageToDict

        value = MessageToDict(value, preserving_proto_field_name=True)
    return json.dumps(value, default=_shown, ensure_ascii=False, separators=(",", ":")).encode()


def _shown(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
