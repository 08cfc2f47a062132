"""A `client.properties` file, as Apache Kafka's own clients and tools take it.

What Java says in other words is translated: `sasl.jaas.config` to properties of its own, a trust store or
key store in PEM to the file that it names. A store in one of Java's own formats is refused with the way out.
What this client has no use for is left out with a warning, as Kafka's clients do: such files are shared.
"""

import logging
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from ottla.model.properties import MalformedProperties, iter_properties

_logger = logging.getLogger(__name__)
_LOGIN_MODULES: Final = ("PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule")
_LOGIN_OPTIONS: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    "tokenauth": "sasl.tokenauth",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_STORES: Final = {"truststore": "ssl.ca.location", "keystore": "ssl.certificate.location"}


class UnusableProperties(ValueError):
    """A file that cannot be read, or that says something this client cannot do."""


def read_properties_file(path: str | os.PathLike[str], known: Collection[str]) -> dict[str, str]:
    """Return those properties of a file that are known, by our names."""
    given = _translated(read_pairs(path))
    if unused := sorted(given.keys() - known):
        _logger.warning("%s: this client ignores %s", os.fspath(path), ", ".join(unused))
    return {name: value for name, value in given.items() if name in known}


def read_pairs(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return all that a file in Java's format has."""
    try:
        return {item.key: item.value.strip() for item in iter_properties(Path(path).read_bytes())}
    except OSError as error:
        raise UnusableProperties(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    except MalformedProperties as error:
        raise UnusableProperties(f"cannot read {os.fspath(path)}: {error}") from error


def usable_properties(given: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """Return those properties that are known, by our names."""
    return {name: value for name, value in _translated(given).items() if name in known}


def _translated(properties: Mapping[str, str]) -> dict[str, str]:
    given = dict(properties)
    _translate_login(given)
    for store, name in _STORES.items():
        _translate_store(given, store, name)
    return given


def _translate_login(given: dict[str, str]) -> None:
    login = given.pop("sasl.jaas.config", None)
    if login is None:
        return
    module, _, options = login.partition(" ")
    if not module.endswith(_LOGIN_MODULES):
        raise UnusableProperties(
            f"sasl.jaas.config has {module}, which this client does not support: use PLAIN, "
            "SCRAM or OAUTHBEARER"
        )
    for option, name in _LOGIN_OPTIONS.items():
        if (found := re.search(rf'\b{option}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', options)) is not None:
            text = found[2] if found[1] is None else re.sub(r"\\(.)", r"\1", found[1])
            given.setdefault(name, text)


def _translate_store(given: dict[str, str], store: str, name: str) -> None:
    location = given.pop(f"ssl.{store}.location", None)
    kind = given.pop(f"ssl.{store}.type", "JKS").upper()
    given.pop(f"ssl.{store}.password", None)
    if not location or name in given:
        return
    if kind != "PEM":
        raise UnusableProperties(
            f"ssl.{store}.location is {location}, in the format {kind}, which this client cannot read: "
            f"export it as PEM, and set {name} to that file"
        )
    given[name] = location
