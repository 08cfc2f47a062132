"""`ottla console`: web pages of one cluster or several, until it is stopped."""

import os
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.failure import Failure
from ottla.cli.log_options import log_options
from ottla.cli.output import say
from ottla.cli.profiles import client_properties, cluster_options
from ottla.cli.satellites import http_settings, missing_extra, server_options

if TYPE_CHECKING:
    from ottla.console.settings import ClusterSettings


@click.command()
@cluster_options
@server_options(default_port=8088)
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen on other addresses than loopback without TLS, because a proxy on this machine or beside it "
    "encrypts what browsers send.",
)
@click.option(
    "--cluster",
    "profiles",
    metavar="PROFILE",
    multiple=True,
    help="Show the cluster of this profile. Can be repeated: a page lists all of them. Default: one cluster, "
    "as for all commands.",
)
@click.option(
    "--registry",
    "registry_url",
    metavar="URL",
    help="The schema registry by which records are decoded.",
)
@click.option(
    "--connect",
    "connect_url",
    metavar="URL",
    help="The REST API of a worker, of Ottla or of Kafka Connect, whose connectors are shown.",
)
@log_options
def console(
    properties: dict[str, str],
    profiles: tuple[str, ...],
    registry_url: str | None,
    connect_url: str | None,
    log_format: str,
    log_level: str,
    **server: Any,
) -> None:
    """Show a cluster as web pages until SIGTERM or SIGINT.

    Prints one line, `ready http://HOST:PORT`, when it accepts browsers. It works with any Kafka cluster.
    If the cluster asks for logins, visitors log in with their own names, and see and do what they may; a name
    and a password among the properties are not used. Otherwise it listens on this machine only.
    """
    http = http_settings(server)
    try:
        from ottla.console.process import ConsoleFailure, run_console
        from ottla.console.settings import ClusterSettings, ConsoleSettings
    except ImportError as error:
        raise missing_extra("console", error) from error
    from ottla.runtime.log_lines import set_up_logging

    set_up_logging(log_format == "json", log_level.upper())
    clusters = _clusters(properties, profiles, registry_url, connect_url, ClusterSettings)
    try:
        run_console(ConsoleSettings(clusters, http), lambda url: say(f"ready {url}"))
    except ConsoleFailure as error:
        raise Failure(str(error)) from error


def _clusters(
    properties: dict[str, str],
    profiles: tuple[str, ...],
    registry_url: str | None,
    connect_url: str | None,
    kind: "type[ClusterSettings]",
) -> "tuple[ClusterSettings, ...]":
    if not profiles:
        return (kind.of("cluster", properties, registry_url, connect_url=connect_url),)
    found = []
    for name in dict.fromkeys(profiles):
        chosen = client_properties(None, name, {}, os.environ)
        found.append(kind.of(name, chosen, registry_url, connect_url=connect_url, is_profile=True))
    return tuple(found)
