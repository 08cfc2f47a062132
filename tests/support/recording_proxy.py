"""A proxy between brokers and their controller that keeps what is said, request by request."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.java.apache_kafka import free_ports

from ottla.wire.apis import Api
from ottla.wire.framing import FrameBuffer, decode_request, decode_response

_POLL_S = 0.2
_END_S = 30


class Exchange(NamedTuple):
    """A request, and its answer."""

    api: Api
    version: int
    request: Any
    response: Any


class RecordingProxy:
    """Forwards every connection to `target`, and keeps what goes through."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        # Lists grow from several threads, and are only ever appended to.
        self.exchanges: list[Exchange] = []
        self._is_closing = threading.Event()
        self._pumps: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._listening.settimeout(_POLL_S)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing.set()
        self._thread.join()
        self._listening.close()
        # They end with their connections, and those with the brokers.
        for pump in self._pumps:
            pump.join(_END_S)

    def of(self, request: type[Any]) -> list[Exchange]:
        """Return the exchanges that began with a request of this kind."""
        return [one for one in self.exchanges if isinstance(one.request, request)]

    def _listen(self) -> None:
        while not self._is_closing.is_set():
            try:
                connection, _ = self._listening.accept()
            except TimeoutError:
                continue
            connection.settimeout(None)
            self._forward(connection)

    def _forward(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        asked: dict[int, tuple[Api, int, Any]] = {}
        requests, responses = FrameBuffer(), FrameBuffer()

        def take_requests(data: bytes) -> None:
            for frame in requests.feed(data):
                head, request = decode_request(frame)
                asked[head.correlation_id] = (head.api, head.version, request)

        def take_responses(data: bytes) -> None:
            for frame in responses.feed(data):
                api, version, request = asked.pop(int.from_bytes(frame[:4], signed=True))
                _, response = decode_response(api, version, frame)
                self.exchanges.append(Exchange(api, version, request, response))

        for source, sink, take in ((near, far, take_requests), (far, near, take_responses)):
            self._pumps.append(threading.Thread(target=_pump, args=(source, sink, take), daemon=True))
            self._pumps[-1].start()


def _pump(source: socket.socket, sink: socket.socket, take: Callable[[bytes], None]) -> None:
    """Pass on bytes until either side closes."""
    try:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                take(data)
                sink.sendall(data)
    finally:
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()
