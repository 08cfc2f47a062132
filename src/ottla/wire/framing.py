"""Frames: a 32-bit size, then that many bytes. And the headers that open each frame.

Requests and responses of a connection keep their order. A response carries no API key: the client knows
from the correlation id what it is.
"""

import struct
from struct import Struct
from typing import Any, NamedTuple

from ottla.wire import primitives
from ottla.wire.apis import Api, api_of
from ottla.wire.codec import Readable, decode_from, encode_pieces
from ottla.wire.errors import MalformedBytes, Unencodable

FRAME_BYTES_MAX = 104_857_600
"""Kafka's default for `socket.request.max.bytes`."""

_SIZE = Struct(">i")
_REQUEST_START = Struct(">hhih")
_REQUEST_KEY = Struct(">hh")


class RequestHead(NamedTuple):
    """The header of a request, and where its body starts in the frame."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class UnsupportedRequest(MalformedBytes):
    """No such API or version exists. Only ApiVersions is answered then, all else is closed."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        super().__init__(f"API {api_key} in version {version} does not exist")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


class FrameBuffer:
    """Cuts a stream of bytes into frames.

    It holds only what has arrived: a size field that announces 100 MiB costs nothing until the bytes come.
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._pending = bytearray()

    def feed(self, data: Readable) -> list[bytes]:
        """Take bytes as they come; return the frames they complete, without their size fields."""
        self._pending += data
        frames: list[bytes] = []
        start = 0
        while (stop := frame_end(self._pending, start, self._frame_bytes_max)) is not None:
            if stop > len(self._pending):
                break
            frames.append(bytes(memoryview(self._pending)[start + 4 : stop]))
            start = stop
        if start:
            del self._pending[:start]
        return frames

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._pending)


def frame_end(buffer: Readable, start: int, frame_bytes_max: int = FRAME_BYTES_MAX) -> int | None:
    """Return where the frame that begins at `start` will end, or None while its size is not all there."""
    if len(buffer) - start < _SIZE.size:
        return None
    (size,) = _SIZE.unpack_from(buffer, start)
    if not 0 <= size <= frame_bytes_max:
        raise MalformedBytes(f"a frame announces {size} bytes, but 0 to {frame_bytes_max} are allowed")
    return start + 4 + int(size)


def decode_request_head(frame: memoryview) -> RequestHead:
    """Read the header of a request. The client id is the one string that never became compact."""
    try:
        api_key, version, correlation_id, length = _REQUEST_START.unpack_from(frame)
        position = _REQUEST_START.size
        client_id = None
        if length >= 0:
            client_id = str(frame[position : position + length], "utf-8")
            position += length
            if position > len(frame):
                primitives.too_short("client_id", length, len(frame) - position + length)
        api = _existing_api(api_key, version, correlation_id)
        if version in api.flexible:
            position = _skip_tagged_fields(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedBytes(f"request header: {error}") from error
    return RequestHead(api, version, correlation_id, client_id, position)


def decode_request(frame: Readable) -> tuple[RequestHead, Any]:
    """Read a whole request. Bytes after the body are ignored: librdkafka's admin client sends some."""
    view = memoryview(frame)
    head = decode_request_head(view)
    request, _ = decode_from(head.api.request, view, head.version, head.body_position)
    return head, request


def decode_response(api: Api, version: int, frame: Readable) -> tuple[int, Any]:
    """Read a whole response to a request of this version. Return its correlation id and the message."""
    view = memoryview(frame)
    try:
        (correlation_id,) = _SIZE.unpack_from(view)
        position = _SIZE.size
        if api.response_header_version(version) == 1:
            position = _skip_tagged_fields(view, position)
    except (struct.error, IndexError) as error:
        raise MalformedBytes(f"response header: {error}") from error
    response, stop = decode_from(api.response, view, version, position)
    if stop != len(view):
        raise MalformedBytes(f"{api.key.name} v{version}: {len(view) - stop} bytes are left over")
    return int(correlation_id), response


def encode_request(request: Any, api: Api, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Write a frame: size, header, body."""
    name = b"" if client_id is None else client_id.encode()
    if len(name) > primitives.STRING_BYTES_MAX:
        raise Unencodable(f"the client id takes {len(name)} bytes, more than {primitives.STRING_BYTES_MAX}")
    length = -1 if client_id is None else len(name)
    tags = b"\0" * (api.request_header_version(version) == 2)
    head = _REQUEST_START.pack(api.key, version, correlation_id, length) + name + tags
    return b"".join(_framed(head, encode_pieces(request, version)))


def encode_response_pieces(response: Any, api: Api, version: int, correlation_id: int) -> list[Any]:
    """Write a frame as pieces; record batches among them are the very objects in the message."""
    head = _SIZE.pack(correlation_id) + b"\0" * api.response_header_version(version)
    return _framed(head, encode_pieces(response, version))


def encode_response(response: Any, api: Api, version: int, correlation_id: int) -> bytes:
    """Write a frame: size, header, body."""
    return b"".join(encode_response_pieces(response, api, version, correlation_id))


def _framed(head: bytes, body: list[Any]) -> list[Any]:
    return [_SIZE.pack(len(head) + sum(map(len, body))) + head, *body]


def _existing_api(api_key: int, version: int, correlation_id: int) -> Api:
    try:
        api = api_of(api_key)
    except ValueError:
        raise UnsupportedRequest(api_key, version, correlation_id) from None
    if version not in api.versions:
        raise UnsupportedRequest(api_key, version, correlation_id)
    return api


def _skip_tagged_fields(frame: memoryview, position: int) -> int:
    """Skip the tagged fields of a header: none has been given a meaning yet."""
    return primitives.skip_tagged_fields(frame, position + 1, len(frame), frame[position])


def peek_api_key(frame: Readable) -> tuple[int, int]:
    """Return the API key and the version that a request frame claims."""
    try:
        api_key, version = _REQUEST_KEY.unpack_from(frame)
    except struct.error as error:
        raise MalformedBytes(f"request header: {error}") from error
    return int(api_key), int(version)
