"""The records inside control batches: transaction markers, and what KRaft writes into its log."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i16, i32, i64, message, struct, u16, wire


@message(versions="0")
class ControlRecordTypeSchema:
    """The key of a control record: which kind of control record it is.

    An int16 version, always 0, stands before it.
    """

    record_type: i16 = wire("0+")


@message(versions="0")
class EndTxnMarker:
    """The value of a transaction's ABORT or COMMIT marker.

    Alone among the control records it has an int16 version before it.
    """

    coordinator_epoch: i32 = wire("0+")


@message(versions="0", flexible="0+")
class KRaftVersionRecord:
    """Record the level of `kraft.version`: 0 has a fixed set of voters, 1 one that can change.

    The first field is at the same time the version of the record.
    """

    version: i16 = wire("0+")
    kraft_version: i16 = wire("0+")


@struct
class LeaderChangeVoter:
    """A voter, as the new leader knew it or as one of those that voted for it."""

    voter_id: i32 = wire("0+")
    voter_directory_id: Uuid = wire("1+", default=ZERO_UUID)


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """Record who leads the metadata quorum from here on: the first record of every epoch.

    The first field is at the same time the version of the record. v1 adds the voters' directory ids.
    """

    version: i16 = wire("0+")
    leader_id: i32 = wire("0+")
    voters: tuple[LeaderChangeVoter, ...] = wire("0+")
    granting_voters: tuple[LeaderChangeVoter, ...] = wire("0+")


@message(versions="0", flexible="0+")
class SnapshotFooterRecord:
    """Mark the end of a metadata snapshot: one without it is not complete."""

    version: i16 = wire("0+")


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord:
    """Begin a metadata snapshot, with the time of the newest record it contains."""

    version: i16 = wire("0+")
    last_contained_log_timestamp: i64 = wire("0+")


@struct
class VoterEndpoint:
    """One of a voter's endpoints, by listener name."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")


@struct
class KRaftVersionFeature:
    """The range of `kraft.version` levels that a voter supports."""

    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@struct
class Voter:
    """A voter of the quorum, its endpoints and the `kraft.version` levels it supports."""

    voter_id: i32 = wire("0+")
    voter_directory_id: Uuid = wire("0+")
    endpoints: tuple[VoterEndpoint, ...] = wire("0+")
    kraft_version_feature: KRaftVersionFeature = wire("0+")


@message(versions="0", flexible="0+")
class VotersRecord:
    """Record the voters of the metadata quorum; in force as soon as it is appended."""

    version: i16 = wire("0+")
    voters: tuple[Voter, ...] = wire("0+")
