"""Options that all commands share which run an HTTP server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.satellite.settings import HttpSettings

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def http_options(default_port: int) -> Callable[[F], F]:
    """Add the options that `http_settings` takes."""
    listening, tls, names = _listening(default_port), _tls_options(), _names()
    return _adding((*listening, _USERS, *tls, *_INSTANCE_NAMES, *names, _TRUST_GROUP, _INSECURE))


def server_options(default_port: int) -> Callable[[F], F]:
    """Add those of a server that is alone, and whose users are not its own."""
    return _adding((*_listening(default_port), *_tls_options(), *_names()))


def _adding(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _listening(default_port: int) -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=default_port,
            show_default=True,
            help="The port to listen on, 0 for a free one.",
        ),
    )


def _tls_options() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option("--tls-certificate", "certificate", type=_FILE, help="A PEM file: answer over TLS."),
        click.option("--tls-key", "key", type=_FILE, help="The private key of the certificate."),
        click.option(
            "--tls-client-ca",
            "client_ca",
            type=_FILE,
            help="A PEM file with authorities. Clients need a certificate of one of them.",
        ),
    )


def _names() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--allow-host",
            "allowed_hosts",
            metavar="NAME",
            multiple=True,
            help="A name by which clients call this server, beside its addresses, localhost, --host "
            "and --advertise. Can be repeated. Requests for other names are refused, so that no web "
            "page can have a browser send them.",
        ),
    )


_USERS = click.option(
    "--users",
    "users_file",
    type=_FILE,
    help="A file with a line `name: password` for each user. Clients must log in.",
)
_INSTANCE_NAMES = (
    click.option(
        "--tls-ca",
        "ca",
        type=_FILE,
        help="A PEM file with authorities that the other instances have their certificates from.",
    ),
    click.option(
        "--advertise",
        "advertised_host",
        metavar="HOST",
        help="The name by which the other instances reach this one.",
    ),
)
_TRUST_GROUP = click.option(
    "--trust-group",
    "trusts_group",
    is_flag=True,
    help="Forward requests to whichever instance the group names, also if it cannot prove "
    "that it is one of Ottla's. Needed beside instances of other makers.",
)
_INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Listen on other addresses than loopback without login: any client that reaches the "
    "port can do everything.",
)


def http_settings(given: dict[str, Any]) -> "HttpSettings":
    """Take the options of the server out of those of a command."""
    try:
        from ottla.satellite.settings import HttpSettings
    except ImportError as error:
        raise missing_extra("registry", error) from error
    return HttpSettings(
        host=given.pop("host"),
        port=given.pop("port"),
        users_file=given.pop("users_file", None),
        certificate=given.pop("certificate"),
        key=given.pop("key"),
        client_ca=given.pop("client_ca"),
        ca=given.pop("ca", None),
        is_insecure=given.pop("insecure"),
        advertised_host=given.pop("advertised_host", None),
        allowed_hosts=tuple(given.pop("allowed_hosts")),
        trusts_group=given.pop("trusts_group", False),
    )


def missing_extra(extra: str, error: ImportError) -> Failure:
    """Return the error for a command whose packages are not installed."""
    return Failure(f"the package {error.name!r} is missing: install it with pip install 'ottla[{extra}]'")
