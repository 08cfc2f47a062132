"""AddRaftVoter (API key 80): a controller joins the voters of the metadata quorum."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode


@struct
class Listener:
    """A listener through which the new voter can be reached."""

    name: str = wire("0+", map_key=True)
    host: str = wire("0+")
    port: u16 = wire("0+")


@message(api_key=80, versions="0-1", flexible="0+", listeners=("controller", "broker"))
class AddRaftVoterRequest:
    """Ask the quorum's leader to make a controller a voter.

    A voter is its id together with its directory id: a new disk is a new voter.
    v1 may ask for the answer as soon as the leader has appended the change, before it is committed.
    """

    cluster_id: str | None = wire("0+")
    timeout_ms: i32 = wire("0+")
    voter_id: i32 = wire("0+")
    voter_directory_id: Uuid = wire("0+")
    listeners: tuple[Listener, ...] = wire("0+")
    ack_when_committed: bool = wire("1+", default=True)


@message(api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """Say whether the controller has become a voter."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", ignorable=True)
