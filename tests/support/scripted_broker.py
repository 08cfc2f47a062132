"""A broker that a test plays: it registers at a controller, and what it is asked goes to a script.

    with ScriptedBroker(controller, 11) as leader:
        cluster.create(..., [11, 1, 2])
        asked = leader.of(1).expect(FetchRequest)
        asked.answer(FetchResponse(...))

Each broker that connects has a conversation of its own, by the id in its requests' client id
(`broker-1-fetcher-0`). A conversation lasts longer than a connection.
"""

import queue
import random
import re
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.java.apache_kafka import free_ports
from tests.support.mixed_cluster import CLUSTER_ID, wait_until
from tests.support.plain_client import PlainClient

from ottla.metadata.features import SUPPORTED
from ottla.model.uuid import Uuid
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import FrameBuffer, decode_request, encode_response
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

WAIT_S = 60.0
HEARTBEAT_S = 0.2
SERVED = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.API_VERSIONS)

_R = TypeVar("_R")


@dataclass
class Asked:
    """A request that waits for its answer."""

    request: Any
    api: Api
    version: int
    correlation_id: int
    connection: socket.socket

    def answer(self, response: Any) -> None:
        """Send the response."""
        with suppress(OSError):
            self.connection.sendall(encode_response(response, self.api, self.version, self.correlation_id))

    def hang_up(self) -> None:
        """Close the connection instead."""
        self.connection.shutdown(socket.SHUT_RDWR)


@dataclass
class Talk:
    """What one broker asks, in order."""

    broker_id: int
    asked: list[Asked] = field(default_factory=list)
    _waiting: "queue.Queue[Asked]" = field(default_factory=queue.Queue)
    _first: Asked | None = None

    def put(self, asked: Asked) -> None:
        """Take in what came."""
        self._waiting.put(asked)

    def put_back(self, asked: Asked) -> None:
        """Let the next `expect` find a request again."""
        self._first = asked

    def expect(self, kind: type[_R]) -> Asked:
        """Wait for the next request, which has to be of this kind."""
        first, self._first = self._first, None
        try:
            asked = first or self._waiting.get(timeout=WAIT_S)
        except queue.Empty:
            before = [type(one.request).__name__ for one in self.asked]
            raise AssertionError(f"broker {self.broker_id} sent no {kind.__name__} after {before}") from None
        self.asked.append(asked)
        assert isinstance(asked.request, kind), f"broker {self.broker_id} asked {asked.request}"
        return asked


class ScriptedBroker:
    """Brokers that share one port, and are as alive as the test wants them."""

    def __init__(self, controller: str, *broker_ids: int) -> None:
        """`controller` is the address of the active controller."""
        self.broker_ids = broker_ids
        self.epochs: dict[int, int] = {}
        (self.port,) = free_ports(1)
        self._controller = controller
        self._random = random.Random(broker_ids[0])
        self._talks: dict[int, Talk] = {}
        self._lock = threading.Lock()
        self._fenced: set[int] = set()
        self._states: dict[int, bool] = {}
        self._is_closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._listening.settimeout(HEARTBEAT_S)
        self._client = PlainClient(self._controller)
        for broker_id in self.broker_ids:
            self._register(broker_id)
        for work in (self._listen, self._beat):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()
        for broker_id in self.broker_ids:
            self.set_fenced(broker_id, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        self.hang_up()
        self._listening.close()
        self._client.close()

    def of(self, broker_id: int) -> Talk:
        """Return the conversation with a broker that connects to this one."""
        with self._lock:
            return self._talks.setdefault(broker_id, Talk(broker_id))

    def hang_up(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, []
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    # As the controller sees it

    def set_fenced(self, broker_id: int, is_fenced: bool) -> None:
        """Let a broker be fenced or not, and wait until it is."""
        (self._fenced.add if is_fenced else self._fenced.discard)(broker_id)
        wait_until(lambda: self._states.get(broker_id) is is_fenced, f"broker {broker_id} is so", WAIT_S)

    def _register(self, broker_id: int) -> None:
        features = tuple(
            Feature(name=name, min_supported_version=one.min, max_supported_version=one.max)
            for name, one in SUPPORTED.items()
        )
        listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=self.port, security_protocol=0)
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=Uuid(self._random.randbytes(16)),
            listeners=(listener,),
            features=features,
            rack=None,
            log_dirs=(Uuid(self._random.randbytes(16)),),
        )
        answer = self._client.ask(request)
        assert answer.error_code is ErrorCode.NONE, answer
        self.epochs[broker_id] = answer.broker_epoch

    def _beat(self) -> None:
        while not self._is_closing.wait(HEARTBEAT_S):
            for broker_id in self.broker_ids:
                request = BrokerHeartbeatRequest(
                    broker_id=broker_id,
                    broker_epoch=self.epochs[broker_id],
                    current_metadata_offset=1 << 60,
                    want_fence=broker_id in self._fenced,
                    want_shut_down=False,
                )
                self._states = {**self._states, broker_id: self._client.ask(request).is_fenced}
        for broker_id in self.broker_ids:
            self._client.ask(UnregisterBrokerRequest(broker_id=broker_id))

    # As other brokers see it

    def _listen(self) -> None:
        while not self._is_closing.is_set():
            try:
                connection, _ = self._listening.accept()
            except TimeoutError:
                continue
            connection.settimeout(None)
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameBuffer()
        with connection:
            while True:
                try:
                    data = connection.recv(1 << 16)
                except OSError:
                    return
                if not data:
                    return
                for frame in frames.feed(data):
                    self._take(connection, frame)

    def _take(self, connection: socket.socket, frame: bytes) -> None:
        head, request = decode_request(frame)
        asked = Asked(request, head.api, head.version, head.correlation_id, connection)
        if head.api.key is ApiKey.API_VERSIONS:
            asked.answer(ApiVersionsResponse(api_keys=_versions(SERVED)))
            return
        found = re.fullmatch(r"broker-(\d+)-fetcher-\d+", head.client_id or "")
        if found is not None:
            self.of(int(found[1])).put(asked)


def _versions(keys: Sequence[ApiKey]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=key, min_version=known.first, max_version=known.last)
        for key in keys
        for known in (api_of(key).stable_versions,)
    )
