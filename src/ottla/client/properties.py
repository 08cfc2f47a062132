"""Kafka's client properties, typed. One declaration for each: name, default, bounds, and what it is for.

A settings class is made from keyword arguments (`linger_ms=5`) or from Kafka's own names
(`{"linger.ms": 5}`), text or typed alike, or from the path of a `client.properties` file.
"""

import dataclasses
import logging
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from ottla.client.connection import Address

S = TypeVar("S", bound="CommonSettings")
_logger = logging.getLogger(__name__)
Properties = Mapping[str, Any] | str | os.PathLike[str]
"""Properties by Kafka's names, or the path of a file that has them."""


INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


class InvalidProperty(ValueError):
    """A property that does not exist, or a value that it cannot have."""


def prop(
    doc: str,
    default: Any = dataclasses.MISSING,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    name: str = "",
    is_secret: bool = False,
) -> Any:
    """Declare a property. Its Kafka name is the field's with dots for underscores, unless `name` is given.

    A whole number is an int in Kafka unless it says more: some are sent to brokers in four bytes.
    """
    if high is None and isinstance(default, int) and not isinstance(default, bool):
        high = INT_MAX
    return field(
        default=default,
        repr=not is_secret,
        metadata={"doc": doc, "low": low, "high": high, "choices": choices, "name": name},
    )


def property_name(item: "dataclasses.Field[Any]") -> str:
    """Return Kafka's name of a declared property."""
    return item.metadata["name"] or item.name.replace("_", ".")


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """What producer, consumer and admin share."""

    bootstrap_servers: tuple[Address, ...] = prop(
        "Addresses of brokers to find the cluster, as `host:port`, separated by commas."
    )
    client_id: str = prop("The name of this client in the logs and quotas of the broker.", "ottla")
    request_timeout_ms: int = prop("How long to wait for the response to a request.", 30_000, low=1)
    socket_connection_setup_timeout_ms: int = prop(
        "How long to wait for a connection.", 10_000, low=1, high=LONG_MAX
    )
    retry_backoff_ms: int = prop("The pause before the first retry.", 100, low=0, high=LONG_MAX)
    retry_backoff_max_ms: int = prop("The longest pause between retries.", 1_000, low=0, high=LONG_MAX)
    metadata_max_age_ms: int = prop(
        "Metadata is refreshed after this time even if nothing has changed.", 300_000, low=0, high=LONG_MAX
    )
    security_protocol: str = prop(
        "The protocol for connections to brokers.",
        "PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    sasl_mechanism: str = prop(
        "The SASL mechanism.", "PLAIN", choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    )
    sasl_username: str = prop("The user name for PLAIN and SCRAM.", "")
    sasl_password: str = prop("The password for PLAIN and SCRAM.", "", is_secret=True)
    sasl_tokenauth: bool = prop(
        "Whether the user name is the id of a delegation token, and the password its HMAC in base64.",
        False,
    )
    sasl_oauthbearer_token_endpoint_url: str = prop(
        "Where the tokens for OAUTHBEARER come from: the URL of a provider, or `file:///path` of a token.", ""
    )
    sasl_oauthbearer_client_credentials_client_id: str = prop("The client id for the provider of tokens.", "")
    sasl_oauthbearer_client_credentials_client_secret: str = prop(
        "The client secret for the provider of tokens.", "", is_secret=True
    )
    sasl_oauthbearer_scope: str = prop("The scope to ask the provider of tokens for.", "")
    ssl_ca_location: str = prop("A PEM file with the certificates to trust.", "")
    ssl_certificate_location: str = prop("A PEM file with the client's certificate.", "")
    ssl_key_location: str = prop("A PEM file with the private key of the client's certificate.", "")
    ssl_endpoint_identification_algorithm: str = prop(
        "Whether the broker's host name must match its certificate; empty means no.",
        "https",
        choices=("https", ""),
    )

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            _check(item, getattr(self, item.name))

    @classmethod
    def of(
        cls, properties: Properties | None = None, *, bootstrap_servers: Any = None, **settings: Any
    ) -> Self:
        """Read settings by Kafka's names (or from a file of them), by ours, or both. Ours win.

        `bootstrap_servers` may be missing if the properties have it.
        """
        if bootstrap_servers is not None:
            settings["bootstrap_servers"] = bootstrap_servers
        fields = {property_name(item): item for item in dataclasses.fields(cls)}
        if isinstance(properties, str | os.PathLike):
            properties = _read_file(properties, fields)
        hints = get_type_hints(cls)
        values: dict[str, Any] = {}
        named = {_name_of(cls, key): value for key, value in {**(properties or {}), **settings}.items()}
        for name, value in named.items():
            item = fields.get(name)
            if item is None:
                import difflib

                near = difflib.get_close_matches(name, fields, 1)
                raise InvalidProperty(
                    f"unknown property {name!r}" + (f": did you mean {near[0]!r}?" if near else "")
                )
            values[item.name] = _read(name, hints[item.name], value, bool(item.metadata["choices"]))
        if "bootstrap_servers" not in values:
            raise InvalidProperty("bootstrap.servers is missing: give the address of a broker as `host:port`")
        cls._check_given(values)
        given = {property_name(item) for item in dataclasses.fields(cls) if item.name in values}
        for name, why in cls._without_effect(values):
            if name in given:
                _logger.warning("%s has no effect, because there is %s", name, why)
        return cls(**values)

    @classmethod
    def _check_given(cls, values: Mapping[str, Any]) -> None:
        """Refuse properties that contradict each other. `values` has those that were given."""

    @classmethod
    def _without_effect(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the names of properties that would have no effect if they were given, and why.

        They are no error, as with Kafka's clients: files of properties are shared.
        """
        protocol = values.get("security_protocol", "PLAINTEXT")
        names = [property_name(item) for item in dataclasses.fields(cls)]
        if "SSL" not in protocol:
            why = f"security.protocol={protocol}"
            yield from ((name, why) for name in names if name.startswith("ssl."))
        if "SASL" not in protocol:
            why = f"security.protocol={protocol}"
            yield from ((name, why) for name in names if name.startswith("sasl."))
            return
        mechanism = values.get("sasl_mechanism", "PLAIN")
        by_token = mechanism == "OAUTHBEARER"
        yield from (
            (name, f"sasl.mechanism={mechanism}")
            for name in names
            if (name in ("sasl.username", "sasl.password", "sasl.tokenauth") and by_token)
            or (name.startswith("sasl.oauthbearer.") and not by_token)
        )


def _read_file(path: str | os.PathLike[str], known: Mapping[str, Any]) -> dict[str, str]:
    # Few name a file: the others need not wait for this import.
    from ottla.client.properties_file import UnusableProperties, read_properties_file

    try:
        return read_properties_file(path, known)
    except UnusableProperties as error:
        raise InvalidProperty(str(error)) from error


def _name_of(cls: type[Any], key: str) -> str:
    for item in dataclasses.fields(cls):
        if item.name == key:
            return property_name(item)
    return key.replace("_", ".")


def _check(item: "dataclasses.Field[Any]", value: Any) -> None:
    low, high, choices = item.metadata["low"], item.metadata["high"], item.metadata["choices"]
    name = property_name(item)
    if low is not None and value is not None and value < low:
        raise InvalidProperty(f"{name} is {value}: it must be at least {low}")
    if high is not None and value is not None and value > high:
        raise InvalidProperty(f"{name} is {value}: it must be at most {high}")
    if choices and value not in choices:
        raise InvalidProperty(f"{name} is {value!r}: it must be one of {', '.join(map(repr, choices))}")


def _read(name: str, hint: Any, value: Any, is_choice: bool) -> Any:
    if get_origin(hint) is not None and type(None) in get_args(hint):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if not isinstance(value, str):
        if hint == tuple[Address, ...]:
            return tuple(item if isinstance(item, Address) else parse_address(item) for item in value)
        if hint in (int, float, bool):
            return _typed(name, hint, value)
        # Some choices are numbers in Kafka's own words: `acks=1`.
        return str(value) if is_choice and type(value) is int else value
    try:
        return _READERS.get(hint, lambda text: text)(value)
    except InvalidProperty as error:
        raise InvalidProperty(f"{name}: {error}") from error
    except ValueError as error:
        raise InvalidProperty(f"{name} is {value!r}: it must be {_KINDS[hint]}") from error


def _typed(name: str, kind: type[Any], value: Any) -> Any:
    """Return a value that is not text as the kind that a property has."""
    fits = type(value) is kind or (kind is float and type(value) is int)
    if isinstance(value, float):
        fits = math.isfinite(value) and (kind is float or (kind is int and value.is_integer()))
    if not fits:
        raise InvalidProperty(f"{name} is {value!r}: it must be {_KINDS[kind]}")
    return kind(value)


def parse_address(text: str) -> Address:
    """Read `host:port`, `[ipv6]:port`, or `host` alone with Kafka's port 9092."""
    if "://" in text:
        raise InvalidProperty(f"{text!r} is not an address: leave out {text.partition('://')[0]}://")
    host, colon, port = text.strip().rpartition(":")
    if not colon or text.strip().endswith("]"):
        host, port = text.strip(), "9092"
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidProperty(f"{text!r} is not an address: write `host:port`")
    return Address(host.strip("[]"), int(port))


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}

_READERS: dict[Any, Any] = {
    int: int,
    float: _read_float,
    bool: _read_bool,
    tuple[Address, ...]: lambda text: tuple(parse_address(part) for part in text.split(",") if part.strip()),
    tuple[str, ...]: lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
}
