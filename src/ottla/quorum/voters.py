"""The voters of the metadata quorum: who they are, and which record said so.

With kraft.version 1 the voters are recorded, in the log and in every snapshot: a KRAFT_VOTERS record is in
force as soon as it is appended. With kraft.version 0 no record names them; a config of the nodes does.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ottla.metadata.features import KRAFT_VERSION, SUPPORTED
from ottla.model.uuid import Uuid
from ottla.wire.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
)

STATIC: Final = 0
DYNAMIC: Final = 1
"""The levels of kraft.version."""


class Endpoint(NamedTuple):
    """Where a voter's controller listens."""

    listener: str
    host: str
    port: int


class VoterIdentity(NamedTuple):
    """Who this node is in the quorum."""

    node_id: int
    directory_id: Uuid
    endpoint: Endpoint


class VoterHistory(NamedTuple):
    """What the records so far say about the quorum. `voters` is None where none named them."""

    kraft_version: int = STATIC
    voters: tuple[Voter, ...] | None = None

    def after(self, records: Iterable[Any]) -> "VoterHistory":
        """Return what is known after some control records."""
        history = self
        for record in records:
            if isinstance(record, KRaftVersionRecord):
                history = history._replace(kraft_version=record.kraft_version)
            elif isinstance(record, VotersRecord):
                history = history._replace(voters=record.voters)
        return history

    def records(self) -> tuple[KRaftVersionRecord | VotersRecord, ...]:
        """Return the control records that say the same. With kraft.version 0 there are none."""
        if self.kraft_version == STATIC:
            return ()
        version = KRaftVersionRecord(version=0, kraft_version=self.kraft_version)
        return (version,) if self.voters is None else (version, VotersRecord(version=0, voters=self.voters))


def voter(node_id: int, directory_id: Uuid, endpoints: Iterable[Endpoint]) -> Voter:
    """Describe a voter that runs this code."""
    supported = SUPPORTED[KRAFT_VERSION]
    return Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=tuple(
            VoterEndpoint(name=listener, host=host, port=port) for listener, host, port in endpoints
        ),
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=supported.min, max_supported_version=supported.max
        ),
    )
