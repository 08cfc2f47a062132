"""Envelope (API key 58): a broker forwards a client's request to the controller."""

from ottla.wire.declare import message, wire
from ottla.wire.error_code import ErrorCode


@message(api_key=58, versions="0", flexible="0+", listeners=("controller",))
class EnvelopeRequest:
    """A broker passes a client's request on to the controller, with its sender and where it came from.

    The request inside is complete, with its header. The address is 4 or 16 raw bytes.
    """

    request_data: bytes = wire("0+")
    request_principal: bytes | None = wire("0+")
    client_host_address: bytes = wire("0+")


@message(api_key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    """Give the controller's answer to the request inside, complete with its header.

    The error is about the envelope alone; the answer inside has its own.
    """

    response_data: bytes | None = wire("0+", default=None)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
