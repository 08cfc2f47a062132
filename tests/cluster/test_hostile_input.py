"""What strangers may send: a node closes their connection, says so in a line, and serves everybody else."""

import os
import resource
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce, produce_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.runtime.log_lines import LINES_MAX
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request

HUNDRED_MIB = 104_857_600


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path_factory.mktemp("hostile")) as node:
        yield node


def connect(node: OttlaNode) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), timeout=30)


def read_to_end(client: socket.socket) -> bytes:
    """Return what the node sends before it closes the connection."""
    received = b""
    try:
        while data := client.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def header(api_key: int, version: int, rest: bytes = b"\xff\xff") -> bytes:
    body = struct.pack(">hhi", api_key, version, 1) + rest
    return struct.pack(">i", len(body)) + body


TAGGED_FIELDS = b"\xff\xff" + b"\xff\xff\xff\x7f"
FRAMES = {
    "a negative size": struct.pack(">i", -1),
    "a size beyond the limit": struct.pack(">i", HUNDRED_MIB + 1),
    "an empty frame": struct.pack(">i", 0),
    "an unknown API": header(9999, 0),
    "an API that was removed": header(4, 0),
    "an API of the quorum": header(52, 0),
    "an unknown version": header(3, 99),
    "a version that is no longer served": header(0, 2),
    "a header that is cut short": struct.pack(">i", 5) + b"\0\x03\0\x09\0",
    "a client id that is cut short": header(3, 1, b"\x7f\xff"),
    "a million tagged fields": header(3, 12, TAGGED_FIELDS),
    "a huge array": header(3, 1, b"\xff\xff" + b"\x7f\xff\xff\xff"),
    "a huge compact array": header(3, 12, b"\xff\xff\0" + b"\xff\xff\xff\xff\x0f"),
    "a string beyond the end": header(3, 1, b"\xff\xff" + b"\0\0\0\1" + b"\x7f\xff"),
    "a line of HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a greeting of TLS": bytes.fromhex("16030100c8010000c40303") + bytes(100),
    "random bytes": b"\0\0\0\x40" + bytes(range(0x40)),
}


@pytest.mark.parametrize("name", FRAMES)
def test_bytes_that_are_no_request_close_only_their_connection(node: OttlaNode, name: str) -> None:
    with PlainClient(node.bootstrap) as bystander, connect(node) as client:
        client.sendall(FRAMES[name])
        assert read_to_end(client) == b""
        create_topic(bystander, f"bystander-{list(FRAMES).index(name)}")


def test_every_cut_of_a_request_is_survived(node: OttlaNode) -> None:
    request = encode_request(
        produce_request("nowhere", batch_of(b"v")), api_of(ApiKey.PRODUCE), 9, 1, "client"
    )[4:]
    for length in range(0, len(request), 3):
        with connect(node) as client:
            client.sendall(struct.pack(">i", length) + request[:length])
            client.shutdown(socket.SHUT_WR)
            assert read_to_end(client) == b""


def test_a_refused_batch_changes_nothing(node: OttlaNode) -> None:
    with PlainClient(node.bootstrap) as client:
        create_topic(client, "refusing")
        good = batch_of(b"good")
        for position in range(8, len(good)):
            damaged = bytearray(good)
            damaged[position] ^= 0xFF
            answer = produce(client, "refusing", damaged)
            if 12 <= position < 16:
                # The leader epoch is set by the broker, whatever the producer says.
                assert answer.error_code is ErrorCode.NONE
            else:
                assert answer.error_code is not ErrorCode.NONE, f"byte {position}"
        assert fetch_all(client, "refusing") == [b"good"] * 4


def test_acks_0_with_an_error_closes_the_connection(node: OttlaNode) -> None:
    frame = encode_request(
        produce_request("nowhere", batch_of(b"v"), acks=0), api_of(ApiKey.PRODUCE), 9, 1, None
    )
    with connect(node) as client:
        client.sendall(frame)
        assert read_to_end(client) == b""


def test_errors_of_acks_0_are_few_lines_without_a_traceback(node: OttlaNode) -> None:
    frame = encode_request(
        produce_request("no\nwhere" * 1000, batch_of(b"v"), acks=0), api_of(ApiKey.PRODUCE), 9, 1, None
    )
    before = node.log_path.read_text()
    for _ in range(200):
        with connect(node) as client:
            client.sendall(frame)
            assert read_to_end(client) == b""
    written = node.log_path.read_text()[len(before) :]
    assert "Traceback" not in written
    assert 1 <= len(written.splitlines()) <= 5 * LINES_MAX
    assert len(written) < 20_000


def test_complaints_do_not_fill_the_log(node: OttlaNode) -> None:
    size = node.log_path.stat().st_size
    for _ in range(500):
        with connect(node) as client:
            client.sendall(FRAMES["a negative size"])
            read_to_end(client)
    assert node.log_path.stat().st_size - size < 5_000


def test_announced_frames_cost_nothing(tmp_path: Path) -> None:
    """1,000 connections that each announce 100 MiB and fall silent cost less than 64 MiB together."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Where the backlog is full, the kernel of a client tries again only after one, three and seven seconds.
    with OttlaNode(tmp_path, {"socket.listen.backlog.size": "1000"}) as node, ExitStack() as stack:
        before = node.resident_bytes()
        for _ in range(1000):
            client = stack.enter_context(connect(node))
            client.sendall(struct.pack(">i", HUNDRED_MIB) + b"\0\0\0")
        with PlainClient(node.bootstrap) as client_of_another:
            create_topic(client_of_another, "still-served")
            assert produce(client_of_another, "still-served", batch_of(b"v")).error_code is ErrorCode.NONE
        assert node.resident_bytes() - before < 64 << 20


def test_a_frame_of_the_largest_size_is_read_and_refused(node: OttlaNode) -> None:
    """The memory for it goes back: what counts is what a node holds afterwards."""
    body = struct.pack(">hhi", ApiKey.PRODUCE, 9, 1) + b"\xff\xff\0" + bytes(HUNDRED_MIB - 11)
    before = node.resident_bytes()
    with connect(node) as client:
        with suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(struct.pack(">i", len(body)) + body)
        read_to_end(client)
    with PlainClient(node.bootstrap) as bystander:
        create_topic(bystander, "after-the-large-one")
    assert node.resident_bytes() - before < 64 << 20


def test_a_process_without_descriptors_left_goes_on_serving(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path)
    limited = ["bash", "-c", 'ulimit -n 256; exec "$@"', "limited", *node.command()]
    process = subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready")
        with PlainClient(node.bootstrap) as served:
            crowd = [connect(node) for _ in range(300)]
            create_topic(served, "crowded", partitions=50)
            for client in crowd:
                client.close()
            with PlainClient(node.bootstrap) as latecomer:
                assert produce(latecomer, "crowded", batch_of(b"v")).error_code is ErrorCode.NONE
    finally:
        os.kill(process.pid, 15)
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
