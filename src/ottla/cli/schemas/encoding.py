"""Values as a registry wants them: what `ottla produce --registry` makes of the JSON that it reads."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure
from ottla.cli.schemas.options import open_registry

if TYPE_CHECKING:
    from ottla.cli.records.produce import Given
    from ottla.client.registry.client import Registered, RegistryClient

F = TypeVar("F", bound=Callable[..., Any])
LATEST: Final = "latest"
TYPES: Final = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
"""The format of a schema, by the name of its file."""


def encoding_options(command: F) -> F:
    """Add the options that say by which schemas to write."""
    for option in (
        click.option(
            "--registry-user",
            metavar="NAME:PASSWORD",
            envvar="OTTLA_REGISTRY_USER",
            help="How to log in to it.",
        ),
        click.option(
            "--key-schema",
            metavar="SCHEMA",
            help="The same for keys, of TOPIC-key. Default: keys are written as they are.",
        ),
        click.option(
            "--value-schema",
            metavar="SCHEMA",
            help="With --registry: latest (the default) of the subject TOPIC-value, the id of a schema, or a "
            "file, whose schema is registered.",
        ),
        click.option(
            "--registry",
            metavar="URL",
            help="Read values as JSON, and write them by a schema of this registry.",
        ),
    ):
        command = option(command)
    return command


def encoded(
    records: "Iterator[Given]", topic: str, url: str, user: str | None, value: str | None, key: str | None
) -> "Iterator[Given]":
    """Pass records on with keys and values as the schemas want them."""
    from ottla.client.errors import ClientError
    from ottla.schemas.errors import InvalidSchema, MisfitValue

    with open_registry(url, user) as registry:
        count = 0
        try:
            by_value = _encoder(registry, topic, value, False)
            by_key = None if key is None else _encoder(registry, topic, key, True)
            for record in records:
                count += 1
                yield record._replace(
                    key=record.key if by_key is None else by_key(record.key),
                    value=by_value(record.value),
                )
        except MisfitValue as error:
            raise Failure(f"record {count} does not fit its schema: {error}") from error
        except (ClientError, InvalidSchema) as error:
            raise Failure(str(error)) from error


def _encoder(
    registry: "RegistryClient", topic: str, schema: str | None, is_key: bool
) -> Callable[[bytes | None], bytes | None]:
    from ottla.schemas.wire_format import encode_prefix

    registered = _registered(registry, f"{topic}-{'key' if is_key else 'value'}", schema or LATEST)
    serializer = _serializer(registry, registered, is_key)
    # The id is the one that was asked for, though another subject may have the same schema.
    serializer.use(topic, registered, encode_prefix(registered.id))
    what = "key" if is_key else "value"

    def encode(data: bytes | None) -> bytes | None:
        if data is None:
            return None
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Failure(f"the {what} {data[:60]!r} is not JSON, which --registry reads: {error}") from error
        written: bytes | None = serializer(topic, found)
        return written

    return encode


def _registered(registry: "RegistryClient", subject: str, schema: str) -> "Registered":
    if schema == LATEST:
        return registry.latest(subject)
    if schema.isdecimal():
        return registry.by_id(int(schema))
    path = Path(schema)
    kind = TYPES.get(path.suffix)
    if kind is None:
        raise Failure(
            f"{schema!r} is not a schema: write latest, an id, or a file that ends in {', '.join(TYPES)}"
        )
    try:
        return registry.register(subject, path.read_text(), kind)
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{schema} cannot be read: {error}") from error


def _serializer(registry: "RegistryClient", registered: "Registered", is_key: bool) -> Any:
    from ottla.client.registry.avro import AvroSerializer
    from ottla.client.registry.json_schema import JsonSerializer
    from ottla.client.registry.protobuf import ProtobufSerializer

    kinds: dict[str, Any] = {"AVRO": AvroSerializer, "JSON": JsonSerializer, "PROTOBUF": ProtobufSerializer}
    return kinds[registered.schema_type](
        registry, registered.text, is_key=is_key, references=registered.references
    )
