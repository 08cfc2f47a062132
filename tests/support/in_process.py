"""A node in the process of the test: everything but sockets, for tests that look inside."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ottla.broker.lifecycle.process import NodeOnLoop, NodeOptions
from ottla.broker.lifecycle.startup import Node
from ottla.broker.node import BrokerContext
from ottla.broker.serving.dispatch import PENDING, Session
from ottla.metadata.configs.load import load_node_config
from ottla.runtime.connections.file_range import FileRange
from ottla.runtime.poller import ServingLoop
from ottla.wire.apis import api_of
from ottla.wire.declare import spec_of
from ottla.wire.framing import decode_response, encode_request

_loops: WeakKeyDictionary[Node, ServingLoop] = WeakKeyDictionary()


def loop_of(node: Node) -> ServingLoop:
    """Return the loop that a node runs on."""
    return _loops[node]


class InProcessClient:
    """A conversation with a node without a connection."""

    listener_name = "PLAINTEXT"
    local = ("127.0.0.1", 9092)
    peer_host = "127.0.0.1"
    peer_port = 50_000

    def __init__(self, node: Node) -> None:
        self._loop = loop_of(node)
        self._late: list[list[Any]] = []
        self._failures: list[Exception] = []
        self.muted_ms: list[int] = []
        self.context = BrokerContext(node.broker, self)
        self.session = Session(self.context, node.broker.routes, self._late.append, self._failures.append)

    def has_hung_up(self) -> bool:
        return False

    def mute(self, milliseconds: int) -> None:
        self.muted_ms.append(milliseconds)

    def send(self, frame: bytes | bytearray) -> bytes:
        """Send a frame with its size, and return the frame of the answer."""
        pieces = self.session.receive(memoryview(bytearray(frame))[4:])
        while pieces is PENDING:
            self._loop.run_until_complete(asyncio.sleep(0))
            if self._failures:
                raise self._failures.pop()
            if self._late:
                pieces = self._late.pop()
        return b"".join(_read(piece) if isinstance(piece, FileRange) else piece for piece in pieces)

    def ask(self, request: Any, version: int | None = None, client_id: str | None = "test") -> Any:
        """Send a request and return the answer."""
        key = spec_of(type(request)).api_key
        assert key is not None, "only requests can be sent"
        api = api_of(key)
        version = api.stable_versions.last if version is None else version
        frame = self.send(encode_request(request, api, version, 1, client_id))
        return decode_response(api, version, frame[4:])[1]


def _read(part: FileRange) -> bytearray:
    content = bytearray(len(part))
    assert part.read_warm(memoryview(content)) == len(part), "what was just written is in memory"
    return content


@contextmanager
def in_process_node(
    root: Path, settings: Mapping[str, str] | None = None, *, is_insecure: bool = False
) -> Iterator[Node]:
    """Start a node on a loop of its own, which runs only while somebody waits for an answer."""
    loaded = load_node_config(b"", {"log.dirs": str(root / "data"), **(settings or {})})
    loop = ServingLoop()
    on_loop = NodeOnLoop(loop)
    try:
        node = on_loop.start(loaded.configs, NodeOptions(port=0, is_insecure=is_insecure))
        _loops[node] = loop
        try:
            yield node
        finally:
            on_loop.stop()
    finally:
        loop.close()
