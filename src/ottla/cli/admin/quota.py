"""`ottla quota`: what users, client ids and addresses may use up."""

from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import with_admin
from ottla.cli.output import json_option, show_done, show_rows
from ottla.cli.profiles import cluster_options, parse_assignments

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.admin import Admin

NAMES: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
DEFAULT: Final = "default"


def whom_options(command: "Callable[..., None]") -> "Callable[..., None]":
    """Add the options that say whom a quota binds."""
    for option in (
        click.option("--ip", help=f"An address, or {DEFAULT!r} for those without a quota of their own."),
        click.option("--client", help=f"A client id, or {DEFAULT!r}."),
        click.option("--user", help=f"A user, or {DEFAULT!r}."),
    ):
        command = option(command)
    return command


@click.group()
def quota() -> None:
    """List, set and remove quotas of users, client ids and addresses."""


@quota.command("list")
@cluster_options
@json_option
def list_quotas(properties: dict[str, str], as_json: bool) -> None:
    """List all quotas."""
    found = with_admin(properties, lambda admin: admin.quotas.describe())
    rows = [
        {**_named(whom), "quota": name, "value": value}
        for whom, values in found.items()
        for name, value in sorted(values.items())
    ]
    rows.sort(key=lambda row: [str(row[column]) for column in ("user", "client", "ip", "quota")])
    show_rows(rows, as_json, "there are no quotas; use `ottla quota set` to set one")


@quota.command("set")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@whom_options
@cluster_options
@json_option
def set_quotas(
    properties: dict[str, str],
    as_json: bool,
    values: tuple[str, ...],
    user: str | None,
    client: str | None,
    ip: str | None,
) -> None:
    """Set quotas: producer_byte_rate=1MB, consumer_byte_rate, request_percentage and others."""
    whom = quota_entity(user, client, ip)
    wanted = {name: _number(name, text) for name, text in parse_assignments(values, "NAME=VALUE").items()}

    async def work(admin: "Admin") -> None:
        await admin.quotas.alter(whom, wanted)

    with_admin(properties, work)
    show_done(f"set {', '.join(wanted)} of {_text(whom)}", as_json, **_named(whom), values=wanted)


@quota.command()
@click.argument("names", nargs=-1)
@whom_options
@cluster_options
@json_option
def remove(
    properties: dict[str, str],
    as_json: bool,
    names: tuple[str, ...],
    user: str | None,
    client: str | None,
    ip: str | None,
) -> None:
    """Remove the quotas NAMES, or all that somebody has."""
    whom = quota_entity(user, client, ip)

    async def work(admin: "Admin") -> list[str]:
        from ottla.cli.failure import Failure

        held = (await admin.quotas.describe()).get(whom, {})
        gone = list(names) or sorted(held)
        if missing := [name for name in gone if name not in held]:
            raise Failure(f"{_text(whom)} has no quota {missing[0]}; `ottla quota list` lists them")
        if not gone:
            raise Failure(f"{_text(whom)} has no quotas; `ottla quota list` lists them")
        await admin.quotas.alter(whom, dict.fromkeys(gone))
        return gone

    gone = with_admin(properties, work)
    show_done(f"removed {', '.join(gone)} of {_text(whom)}", as_json, **_named(whom), removed=gone)


def quota_entity(user: str | None, client: str | None, ip: str | None) -> "frozenset[tuple[str, str | None]]":
    """Return whom quotas bind, as the protocol has it."""
    given = {"user": user, "client-id": client, "ip": ip}
    whom = frozenset(
        (kind, None if name == DEFAULT else name) for kind, name in given.items() if name is not None
    )
    if not whom:
        raise click.UsageError("say whom: --user, --client or --ip")
    return whom


def _number(name: str, text: str) -> float:
    from ottla.cli.quantities import config_value

    if name not in NAMES:
        from difflib import get_close_matches

        near = get_close_matches(name, NAMES, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise click.BadParameter(f"there is no quota {name}; {meant}", param_hint="NAME=VALUE")
    try:
        return float(config_value("bytes" if "byte" in name else name, text))
    except ValueError:
        raise click.BadParameter(f"{name} is {text!r}, which is no number", param_hint="NAME=VALUE") from None


def _named(whom: "frozenset[tuple[str, str | None]]") -> dict[str, Any]:
    by_kind = {kind: name or DEFAULT for kind, name in whom}
    return {"user": by_kind.get("user"), "client": by_kind.get("client-id"), "ip": by_kind.get("ip")}


def _text(whom: "frozenset[tuple[str, str | None]]") -> str:
    return " and ".join(f"{kind} {name or DEFAULT}" for kind, name in sorted(whom, key=str))
