"""What serializers and deserializers of all formats share: subjects, ids, and where a record has the id.

A serializer is a function of a topic and a value. It registers its schema when it is first used for a topic,
unless `auto_register` is false: then the schema must be there. With `use_latest` it writes with the latest
version of the subject. With `in_headers` it puts the guid of the schema into a header instead of the id
before the value; producers and consumers of this client pass headers on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.client.registry.client import Registered, RegistryClient
from ottla.client.registry.subjects import SubjectStrategy, topic_name
from ottla.schemas.errors import UnreadableValue
from ottla.schemas.parsed import ParsedSchema, Reference
from ottla.schemas.wire_format import (
    KEY_HEADER,
    PREFIX_BYTES,
    VALUE_HEADER,
    Headers,
    decode_prefix,
    encode_guid,
    encode_prefix,
    find_guid,
)


class Prepared(NamedTuple):
    """How to write values of one schema."""

    prefix: bytes
    header: bytes
    encode: Callable[[Any], bytes]


class SchemaSerializer(ABC):
    """Writes values of one schema."""

    schema_type: str

    def __init__(
        self,
        registry: RegistryClient,
        *,
        is_key: bool = False,
        subject: SubjectStrategy = topic_name,
        auto_register: bool = True,
        use_latest: bool = False,
        normalize: bool = False,
        in_headers: bool = False,
        references: Sequence[Reference] = (),
    ) -> None:
        self._registry = registry
        self._is_key = is_key
        self._subject = subject
        self._auto_register = auto_register
        self._use_latest = use_latest
        self._normalize = normalize
        self._in_headers = in_headers
        self._references = tuple(references)
        self._prepared: dict[str, Prepared] = {}
        # A producer asks for headers only where there is one.
        self.with_headers = self._with_header if in_headers else None

    def __call__(self, topic: str, value: Any) -> bytes | None:
        """Return a value as bytes. Raises MisfitValue."""
        if value is None:
            return None
        prepared = self._prepared.get(topic) or self._prepare(topic)
        if self._in_headers:
            return prepared.encode(value)
        return prepared.prefix + prepared.encode(value)

    def _with_header(self, topic: str, value: Any) -> tuple[bytes | None, Headers]:
        if value is None:
            return None, ()
        prepared = self._prepared.get(topic) or self._prepare(topic)
        name = KEY_HEADER if self._is_key else VALUE_HEADER
        return prepared.encode(value), ((name, prepared.header),)

    def use(self, topic: str, registered: Registered, prefix: bytes) -> None:
        """Write values of a topic by a schema that is registered, and ask the registry for none."""
        self._prepared[topic] = Prepared(prefix + self._path(), b"", self._encoder(registered))

    def _prepare(self, topic: str) -> Prepared:
        subject = self._subject(topic, self._is_key, self._record_name())
        if self._use_latest:
            registered = self._registry.latest(subject)
        else:
            text, references = self._own_schema()
            ask = self._registry.register if self._auto_register else self._registry.find
            registered = ask(subject, text, self.schema_type, references, normalize=self._normalize)
        header = b""
        if self._in_headers:
            if registered.guid is None:
                raise ValueError("the registry tells no guids, so the id cannot be in a header")
            header = encode_guid(registered.guid) + self._path()
        prefix = encode_prefix(registered.id) + self._path()
        prepared = Prepared(prefix, header, self._encoder(registered))
        self._prepared[topic] = prepared
        return prepared

    def _path(self) -> bytes:
        """Return what follows the id of the schema."""
        return b""

    @abstractmethod
    def _record_name(self) -> str | None:
        """Return the full name of what the schema describes."""

    @abstractmethod
    def _own_schema(self) -> tuple[str, Sequence[Reference]]:
        """Return the schema to register."""

    @abstractmethod
    def _encoder(self, registered: Registered) -> Callable[[Any], bytes]:
        """Return what turns a value into bytes of a schema."""


class SchemaDeserializer(ABC):
    """Reads values, each by the schema that it names."""

    schema_type: str

    def __init__(self, registry: RegistryClient, *, is_key: bool = False) -> None:
        self._registry = registry
        self._is_key = is_key
        self._decoders: dict[int | str, Callable[[bytes, int], Any]] = {}

    def __call__(self, _topic: str, data: bytes | None) -> Any:
        """Read a value. Raises UnreadableValue."""
        if data is None:
            return None
        schema_id = decode_prefix(data)
        decoder = self._decoders.get(schema_id)
        if decoder is None:
            decoder = self._decoders[schema_id] = self._checked(self._registry.by_id(schema_id))
        return decoder(data, PREFIX_BYTES)

    def with_headers(self, topic: str, data: bytes | None, headers: Headers) -> Any:
        """Read a value whose schema may be named in a header."""
        found = find_guid(headers, is_key=self._is_key) if headers and data is not None else None
        if found is None or data is None:
            return self(topic, data)
        guid, path = found
        decoder = self._decoders.get(guid)
        if decoder is None:
            decoder = self._decoders[guid] = self._checked(self._registry.by_guid(guid))
        return decoder(path + data, 0)

    def _checked(self, registered: Registered) -> Callable[[bytes, int], Any]:
        if registered.schema_type != self.schema_type:
            raise UnreadableValue(
                f"its schema {registered.id} is of type {registered.schema_type}, not {self.schema_type}: "
                "use another deserializer"
            )
        return self._decoder(self._registry.parse(registered))

    @abstractmethod
    def _decoder(self, writer: ParsedSchema) -> Callable[[bytes, int], Any]:
        """Return what reads values of a schema, from a position on."""
