"""`ottla up --join HOST:PORT`: a new broker of a cluster that asks for no login.

The first start asks a node of the cluster for what a broker has to know: the cluster's id, where its
controllers are, and an id that is free. It is written to a file beside the data directory, where later starts
find it:

    ottla-data                   the data
    ottla-data.join.properties   how the node found its cluster, and its own addresses
"""

import socket
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.settings import DEFAULT_DATA_DIRECTORY

if TYPE_CHECKING:
    from ottla.broker.lifecycle.format_options import FormatOptions
    from ottla.client.admin import Admin
    from ottla.client.admin.quorum import ControllerEndpoint

_SUFFIX: Final = ".join.properties"
_CLUSTER_ID: Final = "ottla.joined.cluster.id"
_PATIENCE_S: Final = 3.0


class Joined(NamedTuple):
    """What a node knows of the cluster that it joins."""

    cluster_id: str
    settings: dict[str, str]


def is_address(text: str) -> bool:
    """Say whether somebody means a cluster, and not the file of a token."""
    host, colon, port = text.rpartition(":")
    return bool(colon and host) and port.isascii() and port.isdecimal() and not Path(text).exists()


def find_joined(data: Path) -> Joined | None:
    """Return what an earlier start has written down."""
    from ottla.model.properties import iter_properties

    path = _file(data)
    try:
        settings = {item.key: item.value for item in iter_properties(path.read_bytes())}
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}") from error
    cluster_id = settings.pop(_CLUSTER_ID, "")
    return Joined(cluster_id, settings)


def join(bootstrap: str, data: Path) -> Joined:
    """Ask a cluster how to join it, and write it down."""
    from ottla.model.properties import encode_settings
    from ottla.runtime.private_files import write_private

    joined = with_admin({"bootstrap.servers": bootstrap}, _ask)
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        text = encode_settings(
            {**joined.settings, _CLUSTER_ID: joined.cluster_id}, "Written by `ottla up --join`."
        )
        write_private(_file(data), text)
    except OSError as error:
        raise Failure(f"cannot write {_file(data)}: {error.strerror}") from error
    return joined


async def _ask(admin: "Admin") -> Joined:
    cluster = await admin.cluster.describe(fenced=True)
    quorum = await admin.quorum.describe()
    voters = {voter.node_id for voter in quorum.voters}
    found = [endpoint for voter in sorted(voters) for endpoint in quorum.endpoints.get(voter, ())]
    reachable = [endpoint for endpoint in found if _answers(endpoint)]
    if not reachable or cluster.cluster_id is None:
        where = ", ".join(map(str, found)) or "no address"
        raise Failure(
            f"the controllers of the cluster listen on {where}, where this machine does not reach them; "
            "nodes of `ottla up --nodes` can be joined, or those with a listener for controllers "
            "(controller.listener.names)"
        )
    taken = {broker.node_id for broker in cluster.brokers} | voters | {o.node_id for o in quorum.observers}
    return Joined(cluster.cluster_id, _settings(max(taken) + 1, reachable))


def _settings(node_id: int, controllers: "list[ControllerEndpoint]") -> dict[str, str]:
    addresses = (
        f"[{one.host}]:{one.port}" if ":" in one.host else f"{one.host}:{one.port}" for one in controllers
    )
    return {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.listener.names": controllers[0].listener,
        "controller.quorum.bootstrap.servers": ",".join(addresses),
    }


def _answers(endpoint: "ControllerEndpoint") -> bool:
    try:
        with closing(socket.create_connection((endpoint.host, endpoint.port), _PATIENCE_S)):
            return True
    except OSError:
        return False


def _file(data: Path) -> Path:
    return data.with_name(f"{data.name}{_SUFFIX}")


def find_or_join(
    address: str | None, data: Path | None, config_file: Path | None, is_formatted: bool
) -> Joined | None:
    """Return how the node has found its cluster, or finds it now; None if it is on its own or configured."""
    if config_file is not None:
        if address is not None:
            raise Failure("--join writes a configuration of its own: leave out --config, and use --set")
        return None
    data = Path(DEFAULT_DATA_DIRECTORY) if data is None else data
    joined = find_joined(data)
    if joined is not None or address is None:
        return joined
    if not is_address(address):
        raise Failure(f"--join {address} is not HOST:PORT; a token is for a secure cluster: add --secure")
    if is_formatted:
        raise Failure(f"{data} belongs to a node already: a new node needs an empty directory")
    return join(address, data)


def check_founds_nothing(static: Mapping[str, object], options: "FormatOptions") -> None:
    """Refuse an id of a cluster without a word on its controllers: it would found a second one of that id."""
    says_how = options.standalone or options.initial_controllers or options.no_initial_controllers
    names = {"controller.quorum.voters", "controller.quorum.bootstrap.servers"}
    if options.cluster_id is not None and not says_how and not names & static.keys():
        raise Failure(
            "--cluster-id alone would found a second cluster of that id: add --join HOST:PORT to join the "
            "one that is there, or --standalone to found a new one"
        )
