"""The schema registry of a converter, by the names of Confluent's converters."""

from collections.abc import Mapping
from typing import Final

from ottla.client.registry import RegistryClient, RegistryRefused
from ottla.connect.errors import ConnectError, DataError

_TIMEOUT_S: Final = 5.0


def registry_client(config: Mapping[str, str], converter: str) -> RegistryClient:
    """Return a client of the registry that a configuration names. Raises ConnectError."""
    url = config.get("schema.registry.url")
    if not url:
        raise ConnectError(f"schema.registry.url is missing: {converter} needs a schema registry")
    user, _, password = config.get("basic.auth.user.info", "").partition(":")
    return RegistryClient(url, username=user or None, password=password or None, timeout_s=_TIMEOUT_S)


def conversion_error(error: Exception, doing: str) -> ConnectError:
    """Return what an error means: a record that cannot be converted, or a registry that does not answer.

    The second is not the fault of the record. So it is not left out, even if errors are tolerated: the task
    fails, and is tried again.
    """
    is_refused = isinstance(error, RegistryRefused) and _status(error.code) >= 500
    if is_refused or getattr(error, "retriable", False):
        return ConnectError(f"{doing}: {error}")
    return DataError(f"{doing}: {error}")


def _status(code: int) -> int:
    # The codes of a registry begin with the status of HTTP: 50001, 42201.
    return int(str(code)[:3])
