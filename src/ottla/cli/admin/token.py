"""`ottla token`: delegation tokens, which stand for a login until they expire."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options
from ottla.cli.quantities import config_value

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.delegation_tokens import DelegationToken


@click.group()
def token() -> None:
    """Delegation tokens: create, list, renew and end them.

    A client that has logged in makes them, for others that are to have no password of their own.
    """


@token.command()
@cluster_options
@json_option
@click.option("--owner", metavar="USER", help="For whom the token logs in. Default: you.")
@click.option("--renewer", "renewers", metavar="USER", multiple=True, help="Who else may renew it.")
@click.option(
    "--max-lifetime",
    metavar="DURATION",
    help="How long it can be renewed at most: 1h, or 7d. Default: what the brokers allow.",
)
def create(
    properties: dict[str, str],
    as_json: bool,
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime: str | None,
) -> None:
    """Create a token, and print its id and its password."""
    lifetime_ms = None if max_lifetime is None else _duration_ms(max_lifetime, "--max-lifetime")

    async def work(admin: "Admin") -> "DelegationToken":
        return await admin.delegation_tokens.create(
            owner=owner, renewers=renewers, max_lifetime_ms=lifetime_ms
        )

    made = with_admin(properties, work)
    show_one({**_facts(made), "password": made.password}, as_json)


@token.command("list")
@cluster_options
@json_option
@click.option("--owner", "owners", metavar="USER", multiple=True, help="Only the tokens of this user.")
def list_tokens(properties: dict[str, str], as_json: bool, owners: tuple[str, ...]) -> None:
    """List the tokens that you may see, without their passwords."""
    found = with_admin(properties, lambda admin: admin.delegation_tokens.list(owners or None))
    show_rows([_facts(one) for one in found], as_json, "there are no delegation tokens that you may see")


@token.command()
@click.argument("token_id")
@cluster_options
@json_option
@click.option(
    "--for", "period", metavar="DURATION", help="From now on: 1h, or 1d. Default: as the brokers say."
)
def renew(properties: dict[str, str], as_json: bool, token_id: str, period: str | None) -> None:
    """Let the token TOKEN_ID live longer."""
    period_ms = None if period is None else _duration_ms(period, "--for")

    async def work(admin: "Admin") -> int:
        return await admin.delegation_tokens.renew((await _find(admin, token_id)).hmac, period_ms)

    expires_ms = with_admin(properties, work)
    show_done(
        f"token {token_id} expires at {_time(expires_ms)}", as_json, token=token_id, expires_at_ms=expires_ms
    )


@token.command()
@click.argument("token_id")
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def expire(properties: dict[str, str], as_json: bool, token_id: str, yes: bool) -> None:
    """End the token TOKEN_ID at once. Connections that are open stay until their login expires."""
    confirm(f"end token {token_id}? Clients cannot log in with it any more", yes)

    async def work(admin: "Admin") -> None:
        await admin.delegation_tokens.expire((await _find(admin, token_id)).hmac)

    with_admin(properties, work)
    show_done(f"ended token {token_id}", as_json, token=token_id)


async def _find(admin: "Admin", token_id: str) -> "DelegationToken":
    for one in await admin.delegation_tokens.list():
        if one.token_id == token_id:
            return one
    raise Failure(f"there is no token {token_id} that you may see; `ottla token list` lists them")


def _facts(one: "DelegationToken") -> dict[str, Any]:
    return {
        "token": one.token_id,
        "owner": one.owner,
        "requester": one.requester,
        "renewers": list(one.renewers),
        "expires": _time(one.expires_at_ms),
        "renewable_until": _time(one.max_at_ms),
    }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration_ms(text: str, option: str) -> int:
    found = config_value("duration.ms", text)
    if not found.isdecimal() or found == text or not 0 < int(found) < 1 << 63:
        raise click.BadParameter(f"{text!r} is not a duration: write 90s, 1h or 7d", param_hint=option)
    return int(found)
