"""Nodes that leave a cluster for good: `ottla cluster unregister` and `ottla cluster remove`."""

from typing import TYPE_CHECKING, Final

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.numbers import COUNT, PARTITION, SECONDS
from ottla.cli.output import confirm, json_option, say, show_done
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.metadata.balance_plan import Move

_PAUSE_S: Final = 0.5


@click.command()
@click.argument("node", type=PARTITION)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def unregister(properties: dict[str, str], as_json: bool, node: int, yes: bool) -> None:
    """Let the cluster forget the broker NODE, which must not run any more.

    What it still holds stays without that replica: `ottla cluster remove` moves it away first.
    """
    confirm(f"forget broker {node}?", yes)

    async def work(admin: "Admin") -> None:
        await _check_is_gone(admin, node)
        await admin.cluster.unregister(node)

    with_admin(properties, work)
    show_done(f"broker {node} is no longer part of the cluster", as_json, unregistered=node)


@click.command()
@click.argument("node", type=PARTITION)
@cluster_options
@json_option
@click.option(
    "--throttle", "throttle_bytes", type=COUNT, metavar="BYTES", help="Copy at most so many bytes a second."
)
@click.option(
    "--at-once", type=COUNT, default=50, show_default=True, help="Move so many partitions at the same time."
)
@click.option(
    "--wait",
    "wait_s",
    type=SECONDS,
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until somebody has stopped the node.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(
    properties: dict[str, str],
    as_json: bool,
    node: int,
    throttle_bytes: int | None,
    at_once: int,
    wait_s: int,
    yes: bool,
) -> None:
    """Take the broker NODE out of the cluster: move everything away, wait until it is stopped, forget it.

    The command can be repeated: what was done is not done again.
    """
    confirm(f"move everything away from node {node}, and forget it?", yes)

    async def work(admin: "Admin") -> "list[Move]":
        from ottla.cli.clusters.moving import carry_out

        moves = await _moves_away(admin, node)
        if moves:
            say(f"moving {len(moves)} partitions away from node {node}", err=True)
            await carry_out(
                admin, moves, throttle_bytes=throttle_bytes, at_once=at_once, progress=_say_nothing
            )
        if await _is_up(admin, node):
            say(f"node {node} holds nothing now: stop it, and this command goes on", err=True)
            await _until_gone(admin, node, wait_s)
        await admin.cluster.unregister(node)
        return moves

    moves = with_admin(properties, work)
    moved = f"{len(moves)} partition" + "s" * (len(moves) != 1)
    show_done(
        f"node {node} is no longer part of the cluster; {moved} moved",
        as_json,
        unregistered=node,
        moved=[str(move.where) for move in moves],
    )


async def _moves_away(admin: "Admin", node: int) -> "list[Move]":
    from ottla.cli.clusters.survey import survey
    from ottla.metadata.balance_plan import TooFewBrokers, plan_moves

    found = await survey(admin)
    if node not in {broker.node_id for broker in found.brokers}:
        raise Failure(f"there is no broker {node}; `ottla cluster describe` lists them")
    await _check_is_no_voter(admin, node)
    try:
        return plan_moves(found.nodes, found.placed(), empty=(node,), moves_replicas=False)
    except TooFewBrokers as error:
        raise Failure(f"{error}; add a broker first, or give its topic fewer replicas") from error


async def _check_is_no_voter(admin: "Admin", node: int) -> None:
    voters = {voter.node_id for voter in (await admin.quorum.describe()).voters}
    if node in voters:
        raise Failure(
            f"node {node} is a controller, too: remove it from the quorum first with `ottla quorum remove`, "
            "or let it vote on, and empty it with `ottla cluster drain`"
        )


async def _is_up(admin: "Admin", node: int) -> bool:
    found = await admin.cluster.describe(fenced=True)
    return any(broker.node_id == node and not broker.is_fenced for broker in found.brokers)


async def _check_is_gone(admin: "Admin", node: int) -> None:
    found = await admin.cluster.describe(fenced=True)
    if node not in {broker.node_id for broker in found.brokers}:
        raise Failure(f"there is no broker {node}; `ottla cluster describe` lists them")
    if await _is_up(admin, node):
        raise Failure(f"broker {node} is running: stop it first, or it would register again")


async def _until_gone(admin: "Admin", node: int, wait_s: int) -> None:
    import asyncio

    try:
        async with asyncio.timeout(wait_s):
            while await _is_up(admin, node):
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        raise Failure(
            f"node {node} holds nothing, but still runs after {wait_s} s: stop it, and repeat the command"
        ) from None


def _say_nothing(_done: int, _total: int) -> None:
    pass
