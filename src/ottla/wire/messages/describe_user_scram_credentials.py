"""DescribeUserScramCredentials (API key 50): which SCRAM credentials users have."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class UserName:
    """A user asked about."""

    name: str = wire("0+")


@message(api_key=50, versions="0", flexible="0+", listeners=("broker", "controller"))
class DescribeUserScramCredentialsRequest:
    """Ask which SCRAM credentials some users have, or all users when null."""

    users: tuple[UserName, ...] | None = wire("0+")


@struct
class CredentialInfo:
    """One credential: its mechanism and its iterations."""

    mechanism: i8 = wire("0+")
    iterations: i32 = wire("0+")


@struct
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    credential_infos: tuple[CredentialInfo, ...] = wire("0+")


@message(api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """Tell the mechanisms and iterations of each user's credentials, never the secrets."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = wire("0+")
