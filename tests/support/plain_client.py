"""The least a client can be: a blocking socket, our own codec, one request at a time.

Tests use it to ask a live broker, Apache Kafka or ours, and to see its very answer.
"""

import socket
from types import TracebackType
from typing import Any, Self

from ottla.wire.apis import Api, api_of
from ottla.wire.declare import spec_of
from ottla.wire.framing import FrameBuffer, decode_response, encode_request


class PlainClient:
    """One connection to one broker."""

    def __init__(self, bootstrap: str, timeout_s: float = 60) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._frames = FrameBuffer()
        self._correlation_id = 0
        self._awaited: tuple[Api, int]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send a request in `version` (the newest, if none is given) and return the answer."""
        self.send(request, version)
        return self.receive()

    def send(self, request: Any, version: int | None = None) -> None:
        """Send a request whose answer may take a while. `receive` waits for it."""
        spec = spec_of(type(request))
        assert spec.api_key is not None, "only requests can be sent"
        api = api_of(spec.api_key)
        version = spec.versions.last if version is None else version
        self._correlation_id += 1
        self._socket.sendall(encode_request(request, api, version, self._correlation_id, "plain-client"))
        self._awaited = (api, version)

    def receive(self) -> Any:
        """Return the answer to what was sent last."""
        correlation_id, response = decode_response(*self._awaited, self.receive_frame())
        assert correlation_id == self._correlation_id
        return response

    def receive_frame(self) -> bytes:
        """Return the answer to what was sent last, as the bytes that came."""
        while True:
            data = self._socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker closed the connection instead of answering")
            frames = self._frames.feed(data)
            if frames:
                return frames[0]
