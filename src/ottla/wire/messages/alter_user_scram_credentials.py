"""AlterUserScramCredentials (API key 51): SCRAM credentials are stored or removed."""

from ottla.wire.declare import i8, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class ScramCredentialDeletion:
    """A user and the mechanism whose credential is to be deleted."""

    name: str = wire("0+")
    mechanism: i8 = wire("0+")


@struct
class ScramCredentialUpsertion:
    """A user's credential for one mechanism, to be added or replaced."""

    name: str = wire("0+")
    mechanism: i8 = wire("0+")
    iterations: i32 = wire("0+")
    salt: bytes = wire("0+")
    salted_password: bytes = wire("0+")


@message(api_key=51, versions="0", flexible="0+", listeners=("broker", "controller"))
class AlterUserScramCredentialsRequest:
    """Store or remove the SCRAM credentials of users.

    The password never travels: the client sends it salted and iterated.
    """

    deletions: tuple[ScramCredentialDeletion, ...] = wire("0+")
    upsertions: tuple[ScramCredentialUpsertion, ...] = wire("0+")


@struct
class AlterUserScramCredentialsResult:
    """What became of one user's changes."""

    user: str = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("0+")


@message(api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """Say for each user whether the credentials were changed."""

    throttle_time_ms: i32 = wire("0+", default=0)
    results: tuple[AlterUserScramCredentialsResult, ...] = wire("0+")
