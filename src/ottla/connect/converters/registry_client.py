"""The schema registry of a converter, by the names of Confluent's converters."""

from collections.abc import Mapping
from typing import Final

from ottla.client.registry import RegistryClient
from ottla.connect.errors import ConnectError

_TIMEOUT_S: Final = 5.0


def registry_client(config: Mapping[str, str], converter: str) -> RegistryClient:
    """Return a client of the registry that a configuration names. Raises ConnectError."""
    url = config.get("schema.registry.url")
    if not url:
        raise ConnectError(f"schema.registry.url is missing: {converter} needs a schema registry")
    user, _, password = config.get("basic.auth.user.info", "").partition(":")
    return RegistryClient(url, username=user or None, password=password or None, timeout_s=_TIMEOUT_S)
