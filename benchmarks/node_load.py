"""Load for a broker, made of prepared frames over plain sockets, so that the broker is what is measured.

A Python client would cost more than the brokers do. Here requests are encoded once and sent again and again;
answers are only counted by their size fields.
"""

import selectors
import socket
import time
from collections.abc import Sequence

from ottla.model.uuid import Uuid
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.framing import encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_READ_BYTES = 1 << 18


def produce_frame(topic_id: Uuid, partition: int, value_bytes: int, records: int = 1, acks: int = 1) -> bytes:
    """Return a Produce request with one batch."""
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([Record(i, now_ms, None, b"v" * value_bytes) for i in range(records)])
    data = PartitionProduceData(partition_index=partition, records=memoryview(batch))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
    )
    return encode_request(request, api_of(ApiKey.PRODUCE), 13, 1, "bench")


def fetch_frame(topic_id: Uuid, partition: int, offset: int, max_bytes: int, max_wait_ms: int = 500) -> bytes:
    """Return a Fetch request without a session."""
    part = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic_id=topic_id, partitions=(part,)),),
    )
    return encode_request(request, api_of(ApiKey.FETCH), 16, 1, "bench")


def connect(port: int) -> socket.socket:
    """Open a connection to a broker."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class _Peer:
    """One connection that has up to `depth` requests on the way."""

    def __init__(self, connection: socket.socket, frame: bytes, depth: int) -> None:
        self.connection = connection
        self.frame = frame
        self.depth = depth
        self.answered_bytes = 0
        # The beginning of a size field, and how much of an answer is still to come after it.
        self._size = b""
        self._missing = 0

    def take_answers(self, buffer: memoryview) -> int:
        """Read what there is; return how many answers it completes. Content is dropped unseen."""
        count = self.connection.recv_into(buffer)
        assert count, "the broker closed the connection"
        self.answered_bytes += count
        answers = start = 0
        while start < count:
            if self._missing:
                taken = min(self._missing, count - start)
                self._missing -= taken
                start += taken
                answers += self._missing == 0
            else:
                taken = min(4 - len(self._size), count - start)
                self._size += buffer[start : start + taken]
                start += taken
                if len(self._size) == 4:
                    self._missing, self._size = int.from_bytes(self._size), b""
        return answers


def exchange(
    connections: Sequence[socket.socket], frames: Sequence[bytes], requests: int, depth: int = 1
) -> int:
    """Send `requests` requests over the connections in a closed loop; return the bytes of the answers."""
    selector = selectors.DefaultSelector()
    buffer = memoryview(bytearray(_READ_BYTES))
    peers = [_Peer(connection, frame, depth) for connection, frame in zip(connections, frames, strict=True)]
    sent = answered = 0
    for peer in peers:
        selector.register(peer.connection, selectors.EVENT_READ, peer)
        count = min(depth, requests - sent)
        if count > 0:
            peer.connection.sendall(peer.frame * count)
            sent += count
    while answered < sent:
        for key, _ in selector.select():
            ready: _Peer = key.data
            answers = ready.take_answers(buffer)
            answered += answers
            more = min(answers, requests - sent)
            if more > 0:
                ready.connection.sendall(ready.frame * more)
                sent += more
    selector.close()
    return sum(peer.answered_bytes for peer in peers)


def round_trip(connection: socket.socket, frame: bytes) -> None:
    """Send one request and wait for its whole answer."""
    connection.sendall(frame)
    read_answer(connection)


def read_answer(connection: socket.socket) -> bytes:
    """Read one whole answer."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
        piece = connection.recv(_READ_BYTES)
        assert piece, "the broker closed the connection"
        data += piece
    return data
