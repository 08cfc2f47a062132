"""`ottla cluster token`: let another node join a cluster that was started with `ottla up --secure`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--host", required=True, help="The address that the node will listen on.")
@click.option("--node-id", type=click.IntRange(min=0), help="The id of the node. Default: the next free one.")
@click.option("--controller", is_flag=True, help="The node also votes. Have one or three controllers.")
@click.option(
    "--clients",
    "clients_directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("ottla-clients"),
    show_default=True,
    help="Where the first node keeps its secrets.",
)
@cluster_options
@json_option
def token(
    properties: dict[str, str],
    as_json: bool,
    file: Path,
    host: str,
    node_id: int | None,
    controller: bool,
    clients_directory: Path,
) -> None:
    """Write a token to FILE, by which a node can join a cluster that was started with `ottla up --secure`.

    Copy FILE to the other machine, run `ottla up --secure --join FILE` there, and remove FILE. It contains
    the private key of the node: everybody who has it can join the cluster.
    """
    from ottla.cli.nodes.certificates import Authority, make_node
    from ottla.cli.nodes.join_token import JoinToken
    from ottla.cli.nodes.secure import EVERY_ADDRESS
    from ottla.runtime.private_files import write_private

    if host in EVERY_ADDRESS:
        raise Failure("a certificate cannot be for all addresses: give --host one that others can connect to")
    try:
        authority = Authority(
            (clients_directory / "ca.key").read_bytes(), (clients_directory / "ca.pem").read_bytes()
        )
    except OSError as error:
        raise Failure(
            f"cannot read {error.filename}: {error.strerror}; run this where the first node was started, and "
            "name its directory with --clients"
        ) from error

    async def work(admin: "Admin") -> Any:
        return await admin.cluster.describe(fenced=True), await admin.quorum.describe()

    found, quorum = with_admin(properties, work)
    known = {broker.node_id for broker in found.brokers} | quorum.endpoints.keys()
    chosen = max(known) + 1 if node_id is None else node_id
    if chosen in known:
        raise Failure(f"the cluster has a node {chosen} already: choose another --node-id")
    controllers = [
        str(endpoint).partition("://")[2] for endpoints in quorum.endpoints.values() for endpoint in endpoints
    ]
    made = JoinToken(
        found.cluster_id,
        chosen,
        controllers,
        controller,
        authority.certificate.decode(),
        make_node(authority, (host,)).decode(),
    )
    try:
        write_private(file, made.text())
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}") from error
    show_done(
        f"wrote {file}: run `ottla up --secure --host {host} --join {file.name}` on the other machine",
        as_json,
        file=str(file),
        node_id=chosen,
    )
