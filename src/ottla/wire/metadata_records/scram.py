"""Metadata records of SCRAM credentials."""

from ottla.wire.declare import i8, i32, message, wire


@message(api_key=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    """Record a user's SCRAM credential: the keys derived from the password, never the password."""

    name: str = wire("0+")
    mechanism: i8 = wire("0+")
    salt: bytes = wire("0+")
    stored_key: bytes = wire("0+")
    server_key: bytes = wire("0+")
    iterations: i32 = wire("0+")


@message(api_key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    """Record that a user's SCRAM credential is gone."""

    name: str = wire("0+")
    mechanism: i8 = wire("0+")
