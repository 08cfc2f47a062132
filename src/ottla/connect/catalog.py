"""All plugins that a worker has."""

from collections.abc import Iterator
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, one_of
from ottla.connect.connectors import file_stream, http
from ottla.connect.connectors.lake import sink as lake_sink
from ottla.connect.connectors.spark import sink as spark_sink
from ottla.connect.connectors.spark import source as spark_source
from ottla.connect.connectors.sql import postgres_changes, table_sink, table_source
from ottla.connect.converters.json import JsonConverter
from ottla.connect.converters.plain import (
    NUMBERS,
    ByteArrayConverter,
    NumberConverter,
    SimpleHeaderConverter,
    StringConverter,
)
from ottla.connect.plugins import Config, Plugin, PluginKind, Plugins
from ottla.connect.transforms import catalog as transforms

_CONVERTERS: Final = "org.apache.kafka.connect.converters."
_STORAGE: Final = "org.apache.kafka.connect.storage."
_CONVERTER_TYPE: Final = Key(
    "converter.type",
    Kind.STRING,
    "What the converter is used for: key, value or header. It is set by the worker.",
    None,
    Importance.LOW,
)
_JSON_KEYS: Final = (
    _CONVERTER_TYPE,
    Key(
        "schemas.enable",
        Kind.BOOLEAN,
        "Whether each value is in an envelope with its schema.",
        True,
    ),
    Key(
        "decimal.format",
        Kind.STRING,
        "How decimals are written: BASE64 (all digits) or NUMERIC.",
        "BASE64",
        Importance.LOW,
        check=one_of("BASE64", "NUMERIC"),
    ),
    Key(
        "replace.null.with.default",
        Kind.BOOLEAN,
        "Whether a missing value becomes the default of its schema.",
        True,
        Importance.LOW,
    ),
)
_STRING_KEYS: Final = (
    _CONVERTER_TYPE,
    Key("converter.encoding", Kind.STRING, "The encoding of the text.", "UTF-8"),
)


_REGISTRY_KEYS: Final = (
    Key("schema.registry.url", Kind.LIST, "The URLs of the schema registry, separated by commas."),
    Key(
        "basic.auth.user.info",
        Kind.PASSWORD,
        "The user and password for the registry, as user:password.",
        None,
    ),
    Key(
        "auto.register.schemas", Kind.BOOLEAN, "Whether new schemas are registered.", True, Importance.MEDIUM
    ),
)
_PROTOBUF_KEYS: Final = (
    *_REGISTRY_KEYS,
    *(
        Key(name, Kind.BOOLEAN, doc, default, Importance.MEDIUM)
        for name, default, doc in (
            ("enhanced.protobuf.schema.support", False, "Whether names of schemas keep their packages."),
            ("scrub.invalid.names", False, "Whether characters that Protobuf cannot have become others."),
            ("int.for.enums", False, "Whether values of enums are read as numbers."),
            ("optional.for.nullables", False, "Whether fields that can be missing are `optional`."),
            ("optional.for.proto2", True, "Whether an optional field of proto2 can be missing."),
            ("wrapper.for.nullables", False, "Whether fields that can be missing are Google's wrappers."),
            ("wrapper.for.raw.primitives", True, "Whether a wrapper at the top is the value in it."),
            ("generate.struct.for.nulls", False, "Whether a missing message is read as an empty one."),
            ("generate.index.for.unions", True, "Whether the name of a oneof gets its number."),
            ("flatten.unions", False, "Whether fields of a oneof are fields of the message."),
        )
    ),
)


def _avro(config: Config) -> Any:
    # Few use it: the others need not load Avro.
    from ottla.connect.converters.avro import AvroConverter

    return AvroConverter(config)


def _json_schema(config: Config) -> Any:
    from ottla.connect.converters.json_schema import JsonSchemaConverter

    return JsonSchemaConverter(config)


def _protobuf(config: Config) -> Any:
    from ottla.connect.converters.protobuf import ProtobufConverter

    return ProtobufConverter(config)


def _number(name: str) -> Plugin:
    form, schema = NUMBERS[name]

    def make(_config: Config) -> NumberConverter:
        return NumberConverter(form, schema, name)

    return Plugin(f"{_CONVERTERS}{name}Converter", PluginKind.CONVERTER, make)


def _converters() -> Iterator[Plugin]:
    converter = PluginKind.CONVERTER
    yield Plugin(f"{_STORAGE}StringConverter", converter, StringConverter, _STRING_KEYS)
    yield Plugin("org.apache.kafka.connect.json.JsonConverter", converter, JsonConverter, _JSON_KEYS)
    yield Plugin("io.confluent.connect.avro.AvroConverter", converter, _avro, _REGISTRY_KEYS)
    yield Plugin("io.confluent.connect.json.JsonSchemaConverter", converter, _json_schema, _REGISTRY_KEYS)
    yield Plugin("io.confluent.connect.protobuf.ProtobufConverter", converter, _protobuf, _PROTOBUF_KEYS)
    yield Plugin(f"{_CONVERTERS}ByteArrayConverter", converter, ByteArrayConverter)
    yield from map(_number, NUMBERS)
    yield Plugin(f"{_STORAGE}SimpleHeaderConverter", PluginKind.HEADER_CONVERTER, SimpleHeaderConverter)


def all_plugins() -> Plugins:
    """Return everything that a configuration can name."""
    modules = (
        file_stream,
        table_source,
        table_sink,
        postgres_changes,
        http,
        spark_source,
        lake_sink,
        spark_sink,
        transforms,
    )
    return Plugins((*(plugin for module in modules for plugin in module.PLUGINS), *_converters()))
