"""Trust stores and key stores as Java has them: `ssl.truststore.location`, `ssl.keystore.key` and so on.

They are read where the connection is made, which may be another machine than the one that plans. PEM and
PKCS12 are read. Java's own format, JKS, is refused by name.
"""

import ssl
from collections.abc import Mapping
from typing import Final

from ottla.pipelines.properties import InvalidOption
from ottla.runtime.connections.tls_contexts import KeyStore, TlsRefused, TlsSettings, client_context

_PEM_BEGINS: Final = b"-----BEGIN"
STORES: Final = frozenset(
    (
        *(f"ssl.truststore.{name}" for name in ("type", "location", "password", "certificates")),
        *(f"ssl.keystore.{name}" for name in ("type", "location", "password", "key", "certificate.chain")),
        *("ssl.key.password", "ssl.enabled.protocols", "ssl.protocol", "ssl.cipher.suites"),
    )
)
"""The properties that are read here, and not by the client."""


def without_stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what is left for the client."""
    return {name: value for name, value in properties.items() if name not in STORES}


def context_of_stores(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return what connections are encrypted with, if Java's properties say it. Raises InvalidOption."""
    uses_tls = properties.get("security.protocol", "").upper() in ("SSL", "SASL_SSL")
    if not uses_tls or not STORES & properties.keys():
        return None
    location = properties.get("ssl.truststore.location") or properties.get("ssl.ca.location")
    if properties.get("ssl.certificate.location"):
        raise InvalidOption(
            "kafka.ssl.certificate.location does not go with the stores of Java: set "
            "kafka.ssl.keystore.location to a PEM file with the key and its certificates"
        )
    trusted = KeyStore(
        _type_of(properties.get("ssl.truststore.type"), location, "ssl.truststore.location"),
        location,
        properties.get("ssl.truststore.password"),
        certificates=properties.get("ssl.truststore.certificates"),
    )
    own_location = properties.get("ssl.keystore.location")
    own = KeyStore(
        _type_of(properties.get("ssl.keystore.type"), own_location, "ssl.keystore.location"),
        own_location,
        properties.get("ssl.keystore.password"),
        properties.get("ssl.key.password"),
        properties.get("ssl.keystore.key"),
        properties.get("ssl.keystore.certificate.chain"),
    )
    settings = TlsSettings(own, trusted)
    if protocols := _listed(properties.get("ssl.enabled.protocols") or properties.get("ssl.protocol")):
        settings = settings._replace(protocols=protocols)
    if ciphers := _listed(properties.get("ssl.cipher.suites")):
        settings = settings._replace(ciphers=ciphers)
    checks_host_name = properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
    try:
        return client_context(settings, checks_host_name=checks_host_name)
    except TlsRefused as error:
        raise InvalidOption(str(error)) from error


def _type_of(given: str | None, location: str | None, name: str) -> str:
    """Return the type of a store. Java takes JKS for granted, and reads PKCS12 as well if it is that."""
    if given is not None and given.upper() in ("PEM", "PKCS12"):
        return given.upper()
    if given is not None and given.upper() != "JKS":
        raise InvalidOption(f"a store of type {given!r} cannot be read: use PEM or PKCS12")
    if location is None:
        return "PEM"
    try:
        with open(location, "rb") as file:  # noqa: PTH123 - a path as the user gave it
            begins = file.read(len(_PEM_BEGINS))
    except OSError as error:
        raise InvalidOption(f"kafka.{name}: {location} cannot be read: {error.strerror}") from error
    return "PEM" if begins == _PEM_BEGINS else "PKCS12"


def _listed(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]
