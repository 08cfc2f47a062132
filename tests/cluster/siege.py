"""A siege: many peers that never log in, while a client that has goes on with its work.

The peers connect and stay silent, begin a TLS handshake and stop, send garbage, announce large frames and
send a little of them now and then, and log in with wrong passwords, as many at once and as often as they may.
The client writes one small record after the other over TLS. What counts is how long it waits for each,
compared with the time before, how much memory the node takes, and that no peer gets anything without a login.

    python -m tests.cluster.siege --peers 2000 --rate 50 --seconds 20
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import trustme
from tests.support.data_plane import batch_of, create_topic, produce_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.testing.ports import free_port
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

PASSWORD = "a password that nobody guesses"
LARGE_FRAME = (500_000).to_bytes(4)
HANDSHAKE = api_of(ApiKey.SASL_HANDSHAKE)
AUTHENTICATE = api_of(ApiKey.SASL_AUTHENTICATE)


class Siege(NamedTuple):
    """What was measured."""

    calm_ms: list[float]
    besieged_ms: list[float]
    bytes_before: int
    bytes_most: int
    attacks: Counter[str]

    def __str__(self) -> str:
        lines = [
            f"{name:9} {len(ms):6} writes, p50 {_share(ms, 0.5):6.2f} ms, p99 {_share(ms, 0.99):6.2f} ms"
            for name, ms in (("calm", self.calm_ms), ("besieged", self.besieged_ms))
        ]
        lines.append(f"p99 is {_share(self.besieged_ms, 0.99) / _share(self.calm_ms, 0.99):.2f} times that")
        lines.append(f"memory {self.bytes_before >> 20} MiB before, {self.bytes_most >> 20} MiB at most")
        lines.append(", ".join(f"{name} {count}" for name, count in sorted(self.attacks.items())))
        return "\n".join(lines)


def _share(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


# The peers


async def _silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> bytes:
    return await reader.read(1)


async def _half_handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    return await reader.read(1)


async def _garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(random.randbytes(random.randrange(1, 2000)))
    return await reader.read(1)


async def _slow_frame(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Announce a large frame. Every part of it makes the node hold more."""
    writer.write(LARGE_FRAME)
    while not reader.at_eof():
        writer.write(bytes(1000))
        await writer.drain()
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(reader.read(1), 0.5)
    return b""


async def _wrong_password(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    ask = SaslHandshakeRequest(mechanism="PLAIN")
    writer.write(encode_request(ask, HANDSHAKE, 1, 1, "hostile"))
    await _frame(reader)
    token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
    writer.write(encode_request(token, AUTHENTICATE, 2, 2, "hostile"))
    _, answer = decode_response(AUTHENTICATE, 2, await _frame(reader))
    if answer.error_code is ErrorCode.NONE:
        return b"logged in"
    return await reader.read(1)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4))
    return await reader.readexactly(size)


Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]
RAW: dict[str, Attack] = {"silent": _silent, "half a handshake": _half_handshake, "garbage": _garbage}
BEHIND_TLS: dict[str, Attack] = {
    "silent behind TLS": _silent,
    "slow frame": _slow_frame,
    "wrong password": _wrong_password,
}


async def attack(port: int, ca: str, peers: int, rate: float) -> Counter[str]:
    """Attack until SIGTERM. Returns how often in which way, and how often somebody was answered."""
    context = ssl.create_default_context(cafile=ca)
    counts: Counter[str] = Counter()
    free = asyncio.Semaphore(peers)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)

    async def one(name: str) -> None:
        try:
            tls = context if name in BEHIND_TLS else None
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            counts[name] += 1
            try:
                answer = await (RAW | BEHIND_TLS)[name](reader, writer)
                # An alert of TLS is no answer.
                if answer and (tls is not None or answer != b"\x15"):
                    counts["ANSWERED"] += 1
            finally:
                writer.transport.abort()
        except (OSError, EOFError):
            counts["turned away"] += 1
        finally:
            free.release()

    tasks = set()
    names = [*RAW, *BEHIND_TLS]
    while not over.is_set():
        await free.acquire()
        task = asyncio.create_task(one(random.choice(names)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 1 / rate)
    counts["at once in the end"] = len(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return counts


# The client, and the node


class TlsClient(PlainClient):
    """A client that has logged in over TLS."""

    def __init__(self, bootstrap: str, ca: str) -> None:
        super().__init__(bootstrap)
        context = ssl.create_default_context(cafile=ca)
        self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}".encode()), 2)
        assert answer.error_code is ErrorCode.NONE


def _write(client: PlainClient, seconds: float, node: OttlaNode) -> tuple[list[float], int]:
    """Write until the time is over. Returns how long each write took, and the most memory of the node."""
    request = produce_request("polite", batch_of(b"x" * 100), acks=1)
    times: list[float] = []
    most = 0
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        begun = time.perf_counter()
        answer = client.ask(request, 9)
        times.append((time.perf_counter() - begun) * 1000)
        assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE
        if len(times) % 100 == 0:
            most = max(most, node.resident_bytes())
    return times, max(most, node.resident_bytes())


def run_siege(root: Path, peers: int, rate: float, seconds: float) -> Siege:
    """Run a node, and besiege it for a while."""
    authority = trustme.CA()
    ca, certificate = str(root / "ca.pem"), root / "node.pem"
    authority.cert_pem.write_to_path(ca)
    certificate.write_bytes(authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes())
    port = free_port()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{module} required user_alice="{PASSWORD}";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate),
    }
    with OttlaNode(root / "node", settings) as node:
        with PlainClient(node.bootstrap) as admin:
            create_topic(admin, "polite")
        with TlsClient(f"127.0.0.1:{port}", ca) as client:
            _write(client, seconds / 10, node)
            calm, before = _write(client, seconds / 2, node)
            command = [sys.executable, "-m", "tests.cluster.siege", "--attack", f"{port}", "--ca", ca]
            attackers = subprocess.Popen(
                [*command, "--peers", str(peers), "--rate", str(rate)], stdout=subprocess.PIPE, text=True
            )
            try:
                besieged, most = _write(client, seconds, node)
            finally:
                attackers.terminate()
                said, _ = attackers.communicate(timeout=60)
            # Nobody who comes later is kept out.
            TlsClient(f"127.0.0.1:{port}", ca).close()
    return Siege(calm, besieged, before, most, Counter(json.loads(said)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--attack", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ca", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.attack is not None:
        os.nice(5)
        print(json.dumps(asyncio.run(attack(given.attack, given.ca, given.peers, given.rate))))
        return
    with tempfile.TemporaryDirectory(prefix="ottla-siege-") as root:
        siege = run_siege(Path(root), given.peers, given.rate, given.seconds)
    print(siege)
    if siege.attacks["ANSWERED"]:
        sys.exit("a peer was answered that had not logged in")


if __name__ == "__main__":
    main()
