"""Metadata records of delegation tokens."""

from ottla.wire.declare import i64, message, wire


@message(api_key=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    """Record a delegation token. Its secret is not stored: it is computed from the token's id."""

    owner: str = wire("0+")
    requester: str = wire("0+")
    renewers: tuple[str, ...] = wire("0+")
    issue_timestamp: i64 = wire("0+")
    max_timestamp: i64 = wire("0+")
    expiration_timestamp: i64 = wire("0+")
    token_id: str = wire("0+")


@message(api_key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    """Record that a delegation token is gone."""

    token_id: str = wire("0+")
