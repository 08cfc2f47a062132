"""How commands learn which registry to ask."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ottla.cli.failure import Failure
from ottla.cli.satellites import missing_extra

if TYPE_CHECKING:
    from ottla.client.registry.client import RegistryClient

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
DEFAULT_REGISTRY: Final = "http://127.0.0.1:8081"


def registry_options(command: F) -> F:
    """Add the options that say which registry to ask. The command gets them as `url` and `user`."""
    for option in (
        click.option(
            "--user",
            metavar="NAME:PASSWORD",
            envvar="OTTLA_REGISTRY_USER",
            help="How to log in to the registry.",
        ),
        click.option(
            "--registry",
            "url",
            metavar="URL",
            envvar="OTTLA_REGISTRY",
            default=DEFAULT_REGISTRY,
            show_default=True,
            help="The URL of the schema registry, or several, separated by commas.",
        ),
    ):
        command = option(command)
    return command


def open_registry(url: str, user: str | None) -> "RegistryClient":
    """Return a client of a registry."""
    try:
        from ottla.client.registry.client import RegistryClient
    except ImportError as error:
        raise missing_extra("registry", error) from error
    name, _, password = (user or "").partition(":")
    try:
        return RegistryClient(url, username=name or None, password=password)
    except ValueError as error:
        raise Failure(f"cannot use --registry {url!r}: {error}") from error


def with_registry(url: str, user: str | None, work: "Callable[[RegistryClient], T]") -> T:
    """Do something with a registry. What it refuses is reported in a sentence."""
    with open_registry(url, user) as registry:
        from ottla.client.errors import ClientError
        from ottla.schemas.errors import InvalidSchema

        try:
            return work(registry)
        except (ClientError, InvalidSchema) as error:
            raise Failure(str(error)) from error
