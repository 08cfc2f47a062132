"""Reads the bodies of requests, within bounds."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

from ottla.satellite.errors import HttpError
from ottla.satellite.instances import Forwarded
from ottla.satellite.proofs import digest_of

_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Four times as much as a record may have by default, and all that is asked for ends in one."""
_ALL_BYTES_MAX: Final = 64 * _BODY_BYTES_MAX
_SMALL_BYTES_MAX: Final = 64 * 1024
"""Bodies of this size are read also while large ones have taken all the room, and do not end."""
_VALUES_MAX: Final = 50_000
"""While JSON is parsed nobody else is served, and that takes as long as there are values. A text is one."""

_OF_LINES: Final = ("text/plain", "text/csv", "application/x-ndjson")
"""Kinds of bodies that are read line by line."""


class Bodies:
    """The bodies that are in memory."""

    def __init__(self, accepted: Collection[str]) -> None:
        self._accepted = accepted
        self._held = 0

    @contextmanager
    def held(self) -> Iterator["_Held"]:
        """Count what is read within the block, until its end."""
        mine = _Held()
        try:
            yield mine
        finally:
            self._held -= mine.size

    async def read(self, request: Request, mine: "_Held") -> bytes:
        """Read the body of a request. Raises HttpError."""
        self._check_type(request)
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            mine.size += len(chunk)
            self._held += len(chunk)
            if len(data) > _BODY_BYTES_MAX:
                raise HttpError(413, f"The body is larger than {_BODY_BYTES_MAX} bytes")
            if self._held > _ALL_BYTES_MAX and len(data) > _SMALL_BYTES_MAX:
                raise HttpError(503, "There are too many large requests at once: try again")
        forwarded: Forwarded | None = request.scope.get("forwarded")
        if forwarded is not None and forwarded.digest != digest_of(data):
            raise HttpError(401, "The body is not the one that was signed")
        is_one_value = _kind_of(request) not in _OF_LINES
        if is_one_value and len(data) > _SMALL_BYTES_MAX and _count_values(data) > _VALUES_MAX:
            raise HttpError(413, f"The body has more than {_VALUES_MAX} values")
        return bytes(data)

    def _check_type(self, request: Request) -> None:
        """Refuse a body that does not say that it is JSON: a web page can send others without asking."""
        length = request.headers.get("content-length", "0").strip()
        if length.strip("0") == "" and "transfer-encoding" not in request.headers:
            return
        if _kind_of(request) not in self._accepted:
            raise HttpError(415, "HTTP 415 Unsupported Media Type")


def _kind_of(request: Request) -> str:
    return str(request.headers.get("content-type", "")).split(";")[0].strip().lower()


def _count_values(data: bytes | bytearray) -> int:
    """Return how many values and keys a JSON text may have, without parsing it."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    texts = plain.count(b'"') // 2
    if texts > 2 * _VALUES_MAX:
        return texts
    outside = b"".join(plain.split(b'"')[::2])
    return sum(outside.count(sign) for sign in (b",", b"[", b"{"))


class _Held:
    """What one request holds."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0
