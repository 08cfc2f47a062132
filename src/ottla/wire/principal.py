"""The authenticated client of a forwarded request, as a broker tells it to the controller."""

from ottla.wire.declare import message, wire


@message(versions="0", flexible="0+")
class DefaultPrincipalData:
    """Who sent a request that a broker forwards: type, name, and whether by delegation token.

    It travels inside an Envelope, with an int16 version before it.
    """

    principal_type: str = wire("0+")
    name: str = wire("0+")
    token_authenticated: bool = wire("0+")
