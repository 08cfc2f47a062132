"""The headers that stand before every request and every response."""

from ottla.wire.declare import i16, i32, message, wire


@message(versions="1-2", flexible="2+")
class RequestHeader:
    """What stands before every request: API, version, correlation id and client id.

    v2 adds tagged fields and is used where the request is flexible.
    The client id keeps its two-byte length even then, so that any server can read it.
    """

    request_api_key: i16 = wire("0+")
    request_api_version: i16 = wire("0+")
    correlation_id: i32 = wire("0+")
    client_id: str | None = wire("1+", never_compact=True)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """What stands before every response: the correlation id of its request.

    v1 adds tagged fields and is used where the response is flexible, except for ApiVersions: always v0.
    """

    correlation_id: i32 = wire("0+")
