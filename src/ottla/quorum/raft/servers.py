"""The nodes that a replica asks for the leader."""

from typing import TYPE_CHECKING, Final

from ottla.quorum.raft.effects import Destination
from ottla.quorum.raft.settings import Moment, RaftSettings

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica

_FIRST_BOOTSTRAP_ID: Final = -2


def bootstrap_of(settings: RaftSettings) -> tuple[Destination, ...]:
    """Return whom to ask for the leader. Servers of which only the address is known get negative ids."""
    if settings.bootstrap_servers:
        return tuple(
            [
                Destination(_FIRST_BOOTSTRAP_ID - index, host, port)
                for index, (host, port) in enumerate(settings.bootstrap_servers)
            ]
        )
    return tuple(
        [
            Destination(one.voter_id, one.endpoints[0].host, one.endpoints[0].port)
            for one in settings.static_voters.voters
            if one.voter_id != settings.me.node_id and one.endpoints
        ]
    )


def servers(replica: "Replica") -> tuple[Destination, ...]:
    """Return whom to ask for the leader: those that were configured, and the voters.

    Deviation: Kafka asks the configured ones only. All of them may have left the quorum.
    """
    me = replica.settings.me.node_id
    voters = replica.voters
    others = [replica.destination_of(id_, voters.endpoints_of(id_)) for id_ in voters.ids if id_ != me]
    configured = {(server.host, server.port) for server in replica.bootstrap}
    return (*replica.bootstrap, *[one for one in others if one is not None and one[1:] not in configured])


def pick_bootstrap_server(replica: "Replica", now: Moment) -> Destination | None:
    """Return somebody who may know the leader and is ready to be asked."""
    known = servers(replica)
    first = replica.chance.randrange(len(known)) if known else 0
    for server in (*known[first:], *known[:first]):
        if replica.connections.is_ready(server.node_id, now.ms):
            return server
    return None
