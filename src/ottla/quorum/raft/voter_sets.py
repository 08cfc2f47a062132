"""Sets of voters, and the history of the control records that made them.

A voter is its node id together with its directory id: a controller with a new disk is another voter. In a
static quorum (kraft.version 0) directory ids are not known, and the zero id stands for any.

A KRAFT_VOTERS record is in force as soon as it is in the log, committed or not, and undone when the log is
truncated below it. So the history keeps each with its offset.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.voters import DYNAMIC, STATIC, Endpoint, VoterHistory
from ottla.wire.control_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    Voter,
    VoterEndpoint,
    VotersRecord,
)

FORMAT_OFFSET: Final = Offset(-1)
"""Where the voters lie that the snapshot of formatting names: before the first record of the log."""


class ReplicaKey(NamedTuple):
    """A replica of the metadata log. The zero directory id stands for one that is not known."""

    node_id: int
    directory_id: Uuid = ZERO_UUID

    def covers(self, other: "ReplicaKey") -> bool:
        """Say whether `other` is this replica, as far as this key knows."""
        if self.node_id != other.node_id:
            return False
        return self.directory_id == ZERO_UUID or self.directory_id == other.directory_id


def key_of(voter: Voter) -> ReplicaKey:
    """Return the key of a voter."""
    return ReplicaKey(voter.voter_id, voter.voter_directory_id)


def static_voter(node_id: int, endpoint: Endpoint) -> Voter:
    """Describe a voter that `controller.quorum.voters` names: of its directory nothing is known."""
    name, host, port = endpoint
    return Voter(
        voter_id=node_id,
        voter_directory_id=ZERO_UUID,
        endpoints=(VoterEndpoint(name=name, host=host, port=port),),
        kraft_version_feature=KRaftVersionFeature(min_supported_version=STATIC, max_supported_version=STATIC),
    )


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters at one point of the log, in the order of their ids."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        return cls(tuple(sorted(voters, key=key_of)))

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple([voter.voter_id for voter in self.voters])

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple([key_of(voter) for voter in self.voters])

    def find(self, node_id: int) -> Voter | None:
        """Return the voter with an id, whatever its directory."""
        return next((voter for voter in self.voters if voter.voter_id == node_id), None)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Say whether a replica votes. With another directory than the voter's it does not."""
        voter = self.find(key.node_id)
        return voter is not None and key_of(voter).covers(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.is_voter(key)

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        """Return where a voter listens, or nothing for a node that is none."""
        voter = self.find(node_id)
        if voter is None:
            return ()
        return tuple([Endpoint(one.name, one.host, one.port) for one in voter.endpoints])

    def add(self, voter: Voter) -> "VoterSet | None":
        """Return the set with one more voter; None if its id votes already, from whatever directory."""
        if self.find(voter.voter_id) is not None:
            return None
        return VoterSet.of((*self.voters, voter))

    def remove(self, key: ReplicaKey) -> "VoterSet | None":
        """Return the set without a voter; None if it is not in the set, or the last."""
        left = tuple([voter for voter in self.voters if key_of(voter) != key])
        return None if len(left) == len(self.voters) or not left else VoterSet(left)

    def update(self, voter: Voter, *, ignores_directory: bool = False) -> "VoterSet | None":
        """Return the set with a voter described otherwise; None if it is not in the set."""
        known = self.find(voter.voter_id)
        if known is None or not (ignores_directory or key_of(known).covers(key_of(voter))):
            return None
        return VoterSet(tuple([voter if one is known else one for one in self.voters]))

    def differs(self, voter: Voter) -> bool:
        """Say whether the set describes this voter otherwise than it describes itself."""
        known = self.find(voter.voter_id)
        return known is not None and key_of(known).covers(key_of(voter)) and known != voter

    def supports(self, kraft_version: int) -> bool:
        """Say whether all voters know a level of kraft.version."""
        return all(supports(voter.kraft_version_feature, kraft_version) for voter in self.voters)

    def record(self) -> VotersRecord:
        """Return the control record that puts this set in force."""
        return VotersRecord(version=0, voters=self.voters)


EMPTY_VOTER_SET: Final = VoterSet()


def supports(levels: KRaftVersionFeature, kraft_version: int) -> bool:
    """Say whether a range of levels has this one."""
    return levels.min_supported_version <= kraft_version <= levels.max_supported_version


class ControlHistory:
    """The voters and the kraft.version at each point of the log, read up to its end."""

    def __init__(self, static_voters: VoterSet = EMPTY_VOTER_SET) -> None:
        self._static_voters = static_voters
        self._voters: list[tuple[Offset, VoterSet]] = []
        self._kraft_versions: list[tuple[Offset, int]] = []

    @property
    def kraft_version(self) -> int:
        return self._kraft_versions[-1][1] if self._kraft_versions else STATIC

    @property
    def is_dynamic(self) -> bool:
        """Say whether voters can be added and removed."""
        return self.kraft_version >= DYNAMIC

    @property
    def voters(self) -> VoterSet:
        """The voters in force."""
        return self._voters[-1][1] if self._voters else self._static_voters

    @property
    def voters_before(self) -> VoterSet:
        """The voters that were in force before those that are."""
        return self._voters[-2][1] if len(self._voters) > 1 else EMPTY_VOTER_SET

    @property
    def voters_offset(self) -> Offset | None:
        """The offset of the record that named the voters in force, or None if a config did."""
        return self._voters[-1][0] if self._voters else None

    def add(self, offset: Offset, records: Sequence[Any]) -> None:
        """Take note of the control records of a batch, the first of which has this offset."""
        for at, record in enumerate(records, offset):
            if isinstance(record, KRaftVersionRecord):
                self._kraft_versions.append((Offset(at), record.kraft_version))
            elif isinstance(record, VotersRecord):
                self._voters.append((Offset(at), VoterSet.of(record.voters)))

    def restart_from(self, end_offset: Offset, content: VoterHistory) -> None:
        """Forget everything, and begin with what a snapshot says that ends before `end_offset`."""
        self._voters.clear()
        self._kraft_versions.clear()
        self.add(Offset(end_offset - 1), content.records()[:1])
        self.add(Offset(end_offset - 1), content.records()[1:])

    def truncate_to(self, end_offset: Offset) -> None:
        """Forget the records from `end_offset` on."""
        for entries in (self._voters, self._kraft_versions):
            while entries and entries[-1][0] >= end_offset:
                entries.pop()

    def before(self, end_offset: Offset) -> VoterHistory:
        """Return what a snapshot that ends before `end_offset` has to say about the quorum."""
        voters = [voters for offset, voters in self._voters if offset < end_offset]
        versions = [version for offset, version in self._kraft_versions if offset < end_offset]
        kraft_version = versions[-1] if versions else STATIC
        return VoterHistory(kraft_version, voters[-1].voters if voters else None)

    def forget_before(self, start_offset: Offset) -> None:
        """Forget what no truncation can bring back: all but the last entry below `start_offset`."""
        for entries in (self._voters, self._kraft_versions):
            while len(entries) > 1 and entries[1][0] < start_offset:
                del entries[0]
