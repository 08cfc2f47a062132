"""Options that begin with `kafka.`: properties of the client, by Kafka's names.

Spark's users know them from its own Kafka source, where they go to the Java client. Each of them works here,
or is refused with a sentence that says what to do. None is left out silently.
"""

import dataclasses
import difflib
import re
from collections.abc import Mapping
from typing import Final

from ottla.client.producer.settings import ProducerSettings
from ottla.client.properties import CommonSettings, property_name

_PREFIX = "kafka."
_JAAS_FIELD = re.compile(r"""([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")
_ESCAPED = re.compile(r"\\(.)")
_FROM_JAAS: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    "tokenauth": "sasl.tokenauth",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
FETCH_PROPERTIES: Final = frozenset(
    ("isolation.level", "max.partition.fetch.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "group.id")
)
_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_TLS: Final = ("ssl.key.password", "ssl.enabled.protocols", "ssl.protocol", "ssl.cipher.suites")
_BYTES_ALONE: Final = "values are bytes here: decode them with DataFrame operations, and leave it out"
_REFUSED: Final = {
    "auto.offset.reset": "set startingOffsets instead",
    "enable.auto.commit": "the checkpoint of a query keeps its offsets: leave it out",
    "interceptor.classes": "this client runs no Java classes: leave it out",
    "key.deserializer": _BYTES_ALONE,
    "value.deserializer": _BYTES_ALONE,
    "key.serializer": _BYTES_ALONE,
    "value.serializer": _BYTES_ALONE,
    "metric.reporters": "this client runs no Java classes: leave it out",
    "partitioner.class": "this client runs no Java classes: add a column `partition` instead",
    "transactional.id": "each task has an id of its own: name the query with the option pipeline",
    "sasl.kerberos.service.name": "GSSAPI is not supported: use PLAIN, SCRAM or OAUTHBEARER",
}


class InvalidOption(ValueError):
    """An option of a source or sink that is missing, not known, or has a value that it cannot have."""


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties. One list may serve a source and a sink, so those of both are known to both.

    The names of options are not sensitive to case, as Spark has it. A user and a password may be given as
    Java has them, in `sasl.jaas.config`.
    """
    known = {property_name(item) for item in dataclasses.fields(CommonSettings)}
    known |= {property_name(item) for item in dataclasses.fields(ProducerSettings)}
    known |= FETCH_PROPERTIES
    properties: dict[str, str] = {}
    for option, value in options.items():
        name = option.lower()
        if not name.startswith(_PREFIX):
            continue
        name = name.removeprefix(_PREFIX)
        if name in _REFUSED:
            raise InvalidOption(f"option {option!r} cannot be set: {_REFUSED[name]}")
        if name == "sasl.jaas.config":
            properties |= _read_jaas(value)
        elif name in known or name.startswith(_STORES) or name in _TLS:
            properties[name] = value
        else:
            near = difflib.get_close_matches(name, [*known, *_TLS], 1)
            raise InvalidOption(
                f"option {option!r} has no meaning for this client: "
                + (f"did you mean {_PREFIX + near[0]!r}? Otherwise leave it out" if near else "leave it out")
            )
    if not properties.get("bootstrap.servers"):
        raise InvalidOption(
            'option "kafka.bootstrap.servers" is missing: give the address of a broker as `host:port`'
        )
    return properties


def _read_jaas(text: str) -> dict[str, str]:
    """Read the fields of a login that have a meaning here, with quotes or without, as Java does."""
    found: dict[str, str] = {}
    for field, value in _JAAS_FIELD.findall(text):
        if field in _FROM_JAAS:
            is_quoted = value[0] in "\"'"
            found[_FROM_JAAS[field]] = _ESCAPED.sub(r"\1", value[1:-1]) if is_quoted else value
    if not found:
        raise InvalidOption(
            "kafka.sasl.jaas.config names no user: write "
            '`org.apache.kafka.common.security.plain.PlainLoginModule required username="..." '
            'password="...";`'
        )
    return found


def common_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties that connecting takes."""
    names = {property_name(item) for item in dataclasses.fields(CommonSettings)} | set(_TLS)
    return {name: value for name, value in properties.items() if name in names or name.startswith(_STORES)}
