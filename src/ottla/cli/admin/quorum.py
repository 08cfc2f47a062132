"""`ottla quorum`: the controllers that agree on the metadata of a cluster."""

import re
import time
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, say, show_done, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.quorum import ControllerEndpoint, QuorumDescription, QuorumReplica
    from ottla.model.uuid import Uuid

_ENDPOINT: Final = re.compile(r"([^:/]+)://\[?([^\]]+?)\]?:([0-9]+)")


@click.group()
def quorum() -> None:
    """Show, add and remove the voters of the metadata quorum."""


@quorum.command()
@cluster_options
@json_option
def status(properties: dict[str, str], as_json: bool) -> None:
    """Show who leads the quorum, who votes and who follows, and how far each is behind."""
    from ottla.model.uuid import ZERO_UUID

    found = with_admin(properties, lambda admin: admin.quorum.describe())
    now_ms = time.time() * 1000
    leader = next((one for one in found.voters if one.node_id == found.leader), None)
    end = found.high_watermark if leader is None else leader.log_end_offset
    rows = []
    for replica in (*found.voters, *found.observers):
        endpoints = found.endpoints.get(replica.node_id, ()) if replica in found.voters else ()
        rows.append(
            {
                "node": replica.node_id,
                "role": _role_of(replica, found),
                "log_end_offset": replica.log_end_offset,
                "lag": None if replica.log_end_offset < 0 else max(0, end - replica.log_end_offset),
                "seconds_since_fetch": _seconds_since(replica.last_fetch_ms, now_ms),
                "seconds_since_caught_up": _seconds_since(replica.last_caught_up_ms, now_ms),
                "directory_id": None if replica.directory_id == ZERO_UUID else str(replica.directory_id),
                "endpoint": ",".join(map(str, endpoints)) or None,
            }
        )
    if not as_json:
        say(f"leader {found.leader}, epoch {found.leader_epoch}, high watermark {found.high_watermark}")
    show_rows(rows, as_json, "the quorum has no voters")


@quorum.command()
@click.argument("node_id", type=int)
@cluster_options
@json_option
@click.option(
    "--endpoint",
    "endpoints",
    required=True,
    multiple=True,
    help="Where the controller listens, for example CONTROLLER://host:9093. Can be repeated.",
)
@click.option("--directory-id", help="The id of its metadata directory. Default: the one it follows with.")
def add(
    properties: dict[str, str],
    as_json: bool,
    node_id: int,
    endpoints: tuple[str, ...],
    directory_id: str | None,
) -> None:
    """Let the controller NODE_ID vote. It must be running, and have caught up."""
    listeners = [_parse_endpoint(text) for text in endpoints]

    async def work(admin: "Admin") -> None:
        found = await admin.quorum.describe()
        wanted = _find_directory(node_id, directory_id, found.observers, "follows")
        await admin.quorum.add_voter(node_id, wanted, listeners)

    with_admin(properties, work)
    show_done(f"node {node_id} votes now", as_json)


@quorum.command()
@click.argument("node_id", type=int)
@cluster_options
@json_option
@click.option("--directory-id", help="The id of its metadata directory. Default: that of the voter.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(
    properties: dict[str, str], as_json: bool, node_id: int, directory_id: str | None, yes: bool
) -> None:
    """Let the controller NODE_ID vote no longer. It goes on following until it is stopped."""
    confirm(f"remove voter {node_id}?", yes)

    async def work(admin: "Admin") -> None:
        found = await admin.quorum.describe()
        wanted = _find_directory(node_id, directory_id, found.voters, "votes")
        await admin.quorum.remove_voter(node_id, wanted)

    with_admin(properties, work)
    show_done(f"node {node_id} no longer votes", as_json)


def _role_of(replica: "QuorumReplica", found: "QuorumDescription") -> str:
    if replica not in found.voters:
        return "observer"
    return "leader" if replica.node_id == found.leader else "voter"


def _seconds_since(then_ms: int | None, now_ms: float) -> float | None:
    return None if then_ms is None else max(0.0, round((now_ms - then_ms) / 1000, 1))


def _find_directory(
    node_id: int, given: str | None, replicas: "tuple[QuorumReplica, ...]", what: str
) -> "Uuid":
    """Return the directory id that was given, or the one that the leader knows."""
    from ottla.model.uuid import Uuid

    if given is not None:
        try:
            return Uuid.from_text(given)
        except ValueError as error:
            raise Failure(f"{given!r} is not a directory id: {error}") from error
    found = [one.directory_id for one in replicas if one.node_id == node_id]
    if len(found) != 1:
        raise Failure(
            f"node {node_id} {what} with {len(found)} directories as far as the leader knows: give "
            "--directory-id; `ottla quorum status` lists them"
        )
    return found[0]


def _parse_endpoint(text: str) -> "ControllerEndpoint":
    from ottla.client.admin.quorum import ControllerEndpoint

    match = _ENDPOINT.fullmatch(text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise click.BadParameter(f"{text!r} is not LISTENER://HOST:PORT", param_hint="--endpoint")
    return ControllerEndpoint(match[1], match[2], int(match[3]))
