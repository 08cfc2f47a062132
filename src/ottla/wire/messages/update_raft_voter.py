"""UpdateRaftVoter (API key 82): a voter corrects what the quorum knows of it."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i16, i32, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty


@struct
class Listener:
    """A listener through which the voter can be reached."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")


@struct
class KRaftVersionFeature:
    """The range of `kraft.version` levels that the voter supports."""

    min_supported_version: i16 = wire("0+")
    max_supported_version: i16 = wire("0+")


@message(api_key=82, versions="0", flexible="0+", listeners=("controller",))
class UpdateRaftVoterRequest:
    """A voter tells the quorum's leader its present endpoints and `kraft.version` levels."""

    cluster_id: str | None = wire("0+")
    current_leader_epoch: i32 = wire("0+")
    voter_id: i32 = wire("0+")
    voter_directory_id: Uuid = wire("0+")
    listeners: tuple[Listener, ...] = wire("0+")
    kraft_version_feature: KRaftVersionFeature = wire("0+")


@struct
class CurrentLeader:
    """The leader of the quorum, its epoch and its endpoint."""

    leader_id: i32 = wire("0+", default=-1)
    leader_epoch: i32 = wire("0+", default=-1)
    host: str = wire("0+")
    port: i32 = wire("0+")


@message(api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    """Say whether the voter was updated, or name the leader to turn to instead."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    current_leader: CurrentLeader = wire("0+", default=empty(CurrentLeader), tag=0)
