"""RemoveRaftVoter (API key 81): a controller leaves the voters of the metadata quorum."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i32, message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=81, versions="0", flexible="0+", listeners=("controller", "broker"))
class RemoveRaftVoterRequest:
    """Ask the quorum's leader to remove a voter, named by its id and its directory id."""

    cluster_id: str | None = wire("0+")
    voter_id: i32 = wire("0+")
    voter_directory_id: Uuid = wire("0+")


@message(api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """Say whether the voter was removed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+", ignorable=True)
