"""`ottla user`: users that log in by SCRAM. A password is never on the command line, and never sent."""

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_mechanism = click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    default=MECHANISMS[1],
    show_default=True,
    help="The mechanism that the user logs in by.",
)


@click.group()
def user() -> None:
    """Users that log in with a password (SCRAM): list them, set passwords, remove them."""


@user.command("list")
@cluster_options
@json_option
def list_users(properties: dict[str, str], as_json: bool) -> None:
    """List the users, and how they log in."""

    async def work(admin: "Admin") -> Any:
        return await admin.credentials.describe()

    rows = [
        {"user": name, "mechanism": one.mechanism.name.replace("_", "-"), "iterations": one.iterations}
        for name, found in sorted(with_admin(properties, work).succeeded.items())
        for one in found
    ]
    show_rows(rows, as_json, "there are no users with a SCRAM password")


@user.command("set")
@click.argument("name")
@_mechanism
@cluster_options
@json_option
def set_password(properties: dict[str, str], as_json: bool, name: str, mechanism: str) -> None:
    """Set the password of NAME. It is asked for, or read from the first line of stdin."""
    password = _read_password()

    async def work(admin: "Admin") -> None:
        await admin.credentials.set_password(name, password, _code(mechanism))

    with_admin(properties, work)
    show_done(f"set the password of {name} for {mechanism}", as_json, user=name, mechanism=mechanism)


@user.command()
@click.argument("name")
@_mechanism
@cluster_options
@json_option
def remove(properties: dict[str, str], as_json: bool, name: str, mechanism: str) -> None:
    """Remove the password of NAME. Connections that are open stay."""

    async def work(admin: "Admin") -> None:
        await admin.credentials.delete(name, _code(mechanism))

    with_admin(properties, work)
    show_done(f"removed the password of {name} for {mechanism}", as_json, user=name, mechanism=mechanism)


def _read_password() -> str:
    if sys.stdin.isatty():
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise Failure("the password must not be empty")
    return password


def _code(mechanism: str) -> Any:
    from ottla.client.admin.credentials import ScramMechanism

    return ScramMechanism[mechanism.replace("-", "_")]
