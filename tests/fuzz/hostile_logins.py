"""Hostile peers before the login: steps out of order, spoilt frames and tokens, and bytes that are not TLS.

Two things must never happen: that a peer which has not proven who it is gets anything but the versions of
APIs, and that anything but a typed error ends the conversation.

    python -m tests.fuzz.hostile_logins --talks 200000
"""

import argparse
import random
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

import trustme

from ottla.broker.authorization.audit import Audit
from ottla.broker.login.logins import Logins
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.published import PublishedMetadata
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.runtime.connections.tls import TlsFailed, TlsTransport
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.errors import WireError
from ottla.wire.framing import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TOKENS = (
    b"\0alice\0wrong",
    b"n,,n=alice,r=abcdef",
    b"c=biws,r=abcdef,p=AAAA",
    b"n,,\x01auth=Bearer abc.def.ghi\x01\x01",
    b"\x01",
    b"",
)


class FakeTimer:
    def cancel(self) -> None:
        """Nothing is due."""


class FakeScheduler:
    def call_later(self, _delay_ms: int, _callback: Callable[..., None], *_args: Any) -> FakeTimer:
        return FakeTimer()

    def call_soon(self, _callback: Callable[..., None], *_args: Any) -> None:
        """Nobody waits here."""


class FakeClock:
    def now_ms(self) -> int:
        return 1_800_000_000_000

    def monotonic_ms(self) -> int:
        return 1_000

    def monotonic_ns(self) -> int:
        return 1_000_000_000


class FakeWorkers:
    def run(self, _work: Callable[[], None], _done: Callable[[Exception | None], None]) -> None:
        """Nothing is read from the web."""


class FakeWorld:
    def __init__(self, seed: int) -> None:
        self.scheduler = FakeScheduler()
        self.clock = FakeClock()
        self.random = random.Random(seed)
        self.workers = FakeWorkers()
        self.connections_max = 100


class FakeConnection:
    listener_name = "LOGIN"
    peer_host = "10.0.0.7"
    peer_port = 50_000

    def limit_frames(self, _frame_bytes_max: int | None) -> None:
        """Frames are given here."""

    def use_session(self, _session: Any) -> None:
        raise AssertionError("a hostile peer has logged in")

    def answer_later(self, _pieces: Any) -> None:
        """Nobody waits for it."""

    def close(self, _reason: Exception | None = None) -> None:
        """The talk ends."""


class FakeJournal:
    """What a node notes of refused logins."""

    def login_refused(self, _context: Any, _error: Any) -> None:
        """Note nothing."""


class FakeSession:
    """The session behind the login. All that it may be asked for is ApiVersions."""

    context = SimpleNamespace(node=SimpleNamespace(journal=FakeJournal()))

    def receive(self, frame: memoryview) -> list[bytes]:
        assert int.from_bytes(frame[:2]) == ApiKey.API_VERSIONS, "served without a login"
        return [bytes(8) + b"\0\0"]

    def close(self) -> None:
        """Nothing was begun."""


class Report(NamedTuple):
    """How talks ended."""

    talks: int
    ends: Counter[str]


def make_logins(seed: int) -> Logins:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    settings = {
        "listeners": "LOGIN://127.0.0.1:9092",
        "inter.broker.listener.name": "LOGIN",
        "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.login.plain.sasl.jaas.config": f'{plain} user_alice="a password that nobody guesses";',
        "listener.name.login.oauthbearer.sasl.jaas.config": f'{oauth} unsecuredValidatorRequiredScope="no";',
    }
    configs = load_node_config(b"", settings).configs
    world: Any = FakeWorld(seed)
    return Logins(configs, world, PublishedMetadata(), Audit(world.clock, 0))


def frames(chance: random.Random) -> list[bytes]:
    """Return the frames of one talk, some of them spoilt."""
    made: list[bytes] = []
    for _ in range(chance.randrange(1, 7)):
        match chance.randrange(5):
            case 0:
                ask: Any = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            case 1 | 2:
                ask = SaslHandshakeRequest(mechanism=chance.choice((*MECHANISMS, "GSSAPI", "")))
            case 3:
                ask = SaslAuthenticateRequest(auth_bytes=spoil(chance.choice(TOKENS), chance))
            case _:
                ask = MetadataRequest(topics=())
        api = api_of(type(ask).__wire_spec__.api_key)
        version = chance.choice(list(api.versions.all))
        frame = encode_request(ask, api, version, 1, "hostile")[4:]
        made.append(spoil(frame, chance) if chance.random() < 0.3 else bytes(frame))
        if chance.random() < 0.1:
            # Without a header, as after the oldest handshake.
            made.append(spoil(chance.choice(TOKENS), chance))
    return made


def spoil(data: bytes | bytearray, chance: random.Random) -> bytes:
    """Change bytes, cut some off, or add some."""
    spoilt = bytearray(data)
    match chance.randrange(4):
        case 0 if spoilt:
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        case 1:
            del spoilt[chance.randrange(len(spoilt) + 1) :]
        case 2:
            spoilt += chance.randbytes(chance.randrange(1, 40))
    return bytes(spoilt)


def run_logins(talks: int, seed: int) -> Report:
    """Talk to a node that asks for a login."""
    chance = random.Random(seed)
    logins = make_logins(seed)
    ends: Counter[str] = Counter()
    for _ in range(talks):
        connection: Any = FakeConnection()
        session: Any = FakeSession()
        login = logins.begin(connection, session)
        end = "still open"
        for frame in frames(chance):
            try:
                if login.receive(memoryview(frame)) is None:
                    end = "refused"
                    break
            except (ConnectionEnded, WireError) as error:
                end = type(error).__name__
                break
        ends[end] += 1
        login.close()
    assert not logins._unfinished, "a login that is over is forgotten"
    return Report(talks, ends)


class FakeTransport:
    """A peer that sends what it is given, and takes everything."""

    local = ("127.0.0.1", 1)
    peer_host = "10.0.0.7"
    peer_port = 50_000
    peer_certificate = None
    sends_files = False

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks
        self.handler: Callable[[int], None] | None = None

    def receive_into(self, buffer: memoryview) -> int:
        if not self._chunks:
            raise BlockingIOError
        chunk = self._chunks.pop(0)
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def send(self, data: Any) -> int:
        return len(data)

    def watch(self, handler: Callable[[int], None], _events: int) -> None:
        self.handler = handler

    def change(self, _events: int) -> None:
        """There are no events."""

    def close(self) -> None:
        """It is only pretended."""


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def run_handshakes(talks: int, seed: int) -> Report:
    """Send spoilt handshakes to a TLS listener."""
    chance = random.Random(seed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    hello = client_hello()
    scratch = memoryview(bytearray(1 << 16))
    ends: Counter[str] = Counter()
    buffer = memoryview(bytearray(4096))
    for _ in range(talks):
        whole = spoil(hello, chance) if chance.random() < 0.8 else chance.randbytes(chance.randrange(1, 400))
        cut = chance.randrange(len(whole) + 1)
        transport: Any = FakeTransport([part for part in (whole[:cut], whole[cut:]) if part])
        scheduler: Any = FakeScheduler()
        tls = TlsTransport(transport, context, scheduler, scratch)
        tls.watch(lambda _events: None, 1)
        assert tls.peer_certificate is None
        try:
            tls.receive_into(buffer)
            raise AssertionError("a spoilt handshake brought bytes")
        except BlockingIOError:
            ends["still open"] += 1
        except TlsFailed:
            ends["failed"] += 1
        tls.close()
    return Report(talks, ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--talks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, run in (("logins", run_logins), ("handshakes", run_handshakes)):
        report = run(given.talks, given.seed)
        print(f"{name}: {report.talks} talks, {dict(report.ends)}")


if __name__ == "__main__":
    main()
