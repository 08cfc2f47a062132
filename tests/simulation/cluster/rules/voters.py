"""What must hold of the voters that a node knows: they are those that its log names."""

from tests.simulation.cluster.rules.wrong import must

from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.servers import servers
from ottla.quorum.raft.voter_sets import VoterSet
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.control_records import KRaftVersionRecord, VotersRecord


class VoterRules:
    """Looks at the voters of a node when they, or the end of its log, may have changed."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Replica, int | None, int]] = {}

    def look(self, one: SimulatedNode, replica: Replica) -> None:
        """Look at a node between two turns."""
        known = self._seen.get(one.node_id)
        offset, truncations = replica.history.voters_offset, replica.log.log.truncations
        if known is None or known[0] is not replica or known[1] != offset or known[2] != truncations:
            self._seen[one.node_id] = (replica, offset, truncations)
            check_voters(one, replica)


def check_voters(one: SimulatedNode, replica: Replica) -> None:
    """Compare the voters in force with those that the log names, and those that are asked for a leader."""
    history = replica.history
    expected, offset = _read_log(replica)
    # What a snapshot says may also be known from the log before it.
    known_at = None if offset is None else history.voters_offset
    told = (history.kraft_version, history.voters.keys, known_at)
    must(
        told == expected,
        f"quorum: the log of node {one.node_id} says {expected} of the voters, but it acts on {told}",
    )
    me = replica.settings.me.node_id
    asked = {(server.host, server.port) for server in servers(replica)}
    for node_id in replica.voters.ids:
        destination = replica.destination_of(node_id, replica.voters.endpoints_of(node_id))
        must(
            node_id == me or destination is None or destination[1:] in asked,
            f"quorum: node {one.node_id} does not ask voter {node_id} for the leader",
        )


def _read_log(replica: Replica) -> tuple[tuple[int, object, int | None], int | None]:
    """Return the kraft.version, the voters and where they are named, if that is after the snapshot."""
    named_at: int | None = None
    level, voters, offset = 0, replica.settings.static_voters, replica.log.start_offset
    latest = replica.log.snapshots.latest
    if latest is not None:
        content = replica.log.snapshots.read_quorum(latest)
        level, offset = content.kraft_version, latest.end_offset
        voters = voters if content.voters is None else VoterSet.of(content.voters)
    for batch in replica.log.control_batches(offset):
        for at, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record, KRaftVersionRecord):
                level = record.kraft_version
            elif isinstance(record, VotersRecord):
                voters, named_at = VoterSet.of(record.voters), at
    return (level, voters.keys, named_at), named_at
