"""A principal as brokers tell it to the controller, in Apache Kafka's own bytes (`DefaultPrincipalData`)."""

from typing import Final

from ottla.security.principal import Principal
from ottla.wire.codec import decode_from, encode_pieces
from ottla.wire.errors import MalformedBytes
from ottla.wire.principal import DefaultPrincipalData

_VERSION: Final = 0


class UnreadablePrincipal(Exception):
    """The bytes are not those of a principal."""


def encode_principal(principal: Principal) -> bytes:
    """Write a principal: an int16 version and the message."""
    data = DefaultPrincipalData(principal_type=principal.type, name=principal.name, token_authenticated=False)
    return b"".join((_VERSION.to_bytes(2), *encode_pieces(data, _VERSION)))


def decode_principal(data: bytes) -> Principal:
    """Read a principal. Raises `UnreadablePrincipal`."""
    if len(data) < 2 or int.from_bytes(data[:2]) != _VERSION:
        raise UnreadablePrincipal("the version of the principal is not known")
    try:
        message, _ = decode_from(DefaultPrincipalData, memoryview(data), _VERSION, 2)
    except MalformedBytes as error:
        raise UnreadablePrincipal(str(error)) from error
    return Principal(message.principal_type, message.name)
