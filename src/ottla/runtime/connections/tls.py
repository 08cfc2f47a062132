"""TLS over any transport of the world, with the standard library's ssl.

    ciphertext  <->  MemoryBIO  <->  SSLObject  <->  plaintext

A `TlsTransport` takes the place of the transport below it, and is used in the same way: it never blocks, and
the handshake happens while the connection waits for its first bytes. Many records are received, and many are
sent, with one system call.

What is different from a socket: decrypted bytes may lie here that the poller knows nothing of. So whenever
the owner wants to read and some are left, its handler is called in a turn of the loop of its own.
"""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ottla.world.disk import Buffer, File
from ottla.world.network import READABLE, WRITABLE, Listening, Transport
from ottla.world.scheduler import Scheduler, Timer

HANDSHAKE_MS_MAX: Final = 10_000
"""How long a handshake may take. Kafka has no limit but the ten minutes of an idle connection."""
PLAIN_BYTES_AT_ONCE: Final = 128 * 1024
"""How much is encrypted at once: about as much as a socket takes."""
CIPHER_BYTES_AT_ONCE: Final = 256 * 1024


class TlsFailed(ConnectionError):
    """A handshake that failed, or bytes that are not TLS. The message is for the log."""


class TlsTransport:
    """A connection that is encrypted."""

    __slots__ = (
        "_cipher_in",
        "_cipher_out",
        "_deadline",
        "_events",
        "_failure",
        "_handler",
        "_has_news",
        "_inner",
        "_is_closed",
        "_is_shaking_hands",
        "_scheduler",
        "_scratch",
        "_tls",
        "_unsent",
        "_wanted",
        "local",
        "peer_host",
        "peer_port",
    )

    sends_files = False

    def __init__(
        self,
        inner: Transport,
        context: ssl.SSLContext,
        scheduler: Scheduler,
        scratch: memoryview,
        *,
        server_name: str | None = None,
        is_server: bool = True,
    ) -> None:
        """`scratch` is memory to receive into, which others may use between two calls."""
        self._inner = inner
        self._scheduler = scheduler
        self._scratch = scratch
        self._cipher_in = ssl.MemoryBIO()
        self._cipher_out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._cipher_in, self._cipher_out, server_side=is_server, server_hostname=server_name
        )
        self.local = inner.local
        self.peer_host = inner.peer_host
        self.peer_port = inner.peer_port
        self._is_shaking_hands = True
        self._is_closed = False
        self._has_news = False
        self._failure: TlsFailed | None = None
        # Ciphertext that the transport below has not taken yet.
        self._unsent = memoryview(b"")
        self._handler: Callable[[int], None] | None = None
        # What the owner watches for, and what is watched below.
        self._wanted = 0
        self._events = 0
        self._deadline: Timer | None = None

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate that the peer has shown and that was checked, as DER."""
        return None if self._is_shaking_hands else self._tls.getpeercert(binary_form=True)

    # Receiving

    def receive_into(self, buffer: memoryview) -> int:
        """Fill a buffer with what has arrived, and return how many bytes; 0 when the peer has closed."""
        if self._failure is not None:
            raise self._failure
        if self._is_shaking_hands:
            raise BlockingIOError
        received = 0
        while received < len(buffer):
            try:
                count = self._tls.read(len(buffer) - received, buffer[received:])
            except ssl.SSLWantReadError:
                if received or not self._receive_cipher():
                    break
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return received
            except ssl.SSLError as error:
                raise TlsFailed(_words(error)) from error
            if not count:
                return received
            received += count  # type: ignore[operator]  # with a buffer it is a number
        self._flush_cipher()
        if received == len(buffer) and (self._tls.pending() or self._cipher_in.pending):
            self._call_soon()
        if not received:
            raise BlockingIOError
        return received

    def _receive_cipher(self) -> bool:
        """Take what the transport below has. Says whether there was anything, or an end."""
        try:
            count = self._inner.receive_into(self._scratch)
        except BlockingIOError:
            return False
        if count:
            self._cipher_in.write(self._scratch[:count])
        else:
            self._cipher_in.write_eof()
        return True

    def is_closed_by_peer(self) -> bool:
        """Say whether the peer has closed, without receiving anything."""
        if self._failure is not None:
            return True
        if self._is_shaking_hands or self._tls.pending() or self._cipher_in.pending:
            return False
        return self._inner.is_closed_by_peer()

    # Sending

    def send(self, data: Buffer) -> int:
        """Encrypt bytes and send them. Returns how many were taken."""
        if self._failure is not None:
            raise self._failure
        if self._is_shaking_hands or not self._flush_cipher():
            raise BlockingIOError
        taken = 0
        view = memoryview(data)[:PLAIN_BYTES_AT_ONCE]
        try:
            while taken < len(view):
                taken += self._tls.write(view[taken:])
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise TlsFailed(_words(error)) from error
        self._flush_cipher()
        if not taken:
            raise BlockingIOError
        return taken

    send_more = send

    def send_file(self, file: File, position: int, count: int) -> int | None:  # noqa: ARG002
        """Say that files have to be read, since their bytes have to be encrypted."""
        return None

    def _flush_cipher(self) -> bool:
        """Send the ciphertext there is. Says whether all of it was taken."""
        if not self._unsent:
            if not self._cipher_out.pending:
                return True
            self._unsent = memoryview(self._cipher_out.read())
        try:
            while self._unsent:
                self._unsent = self._unsent[self._inner.send(self._unsent) :]
                if not self._unsent and self._cipher_out.pending:
                    self._unsent = memoryview(self._cipher_out.read())
        except BlockingIOError:
            self._watch_below()
            return False
        self._watch_below()
        return True

    # Events

    def watch(self, handler: Callable[[int], None], events: int) -> None:
        """Call `handler` whenever one of the events holds. The handshake begins now."""
        self._handler = handler
        self._wanted = events
        self._events = READABLE
        self._inner.watch(self._on_event, READABLE)
        self._deadline = self._scheduler.call_later(HANDSHAKE_MS_MAX, self._handshake_is_late)
        # A client speaks first.
        self._shake_hands()

    def change(self, events: int) -> None:
        """Watch for other events."""
        self._wanted = events
        if self._is_shaking_hands:
            return
        self._watch_below()
        if events & READABLE and (self._tls.pending() or self._cipher_in.pending):
            self._call_soon()

    def close(self) -> None:
        """Close now, and say so if that can be sent to the peer at once."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if not self._is_shaking_hands and self._failure is None and not self._unsent:
            with suppress(ssl.SSLError, ValueError):
                self._tls.unwrap()
            self._send_last_words()
        self._inner.close()

    def _watch_below(self) -> None:
        events = self._wanted
        if self._is_shaking_hands:
            events = READABLE
        if self._unsent:
            events |= WRITABLE
        if events != self._events and not self._is_closed:
            self._events = events
            self._inner.change(events)

    def _on_event(self, events: int) -> None:
        if events & WRITABLE:
            try:
                is_flushed = self._flush_cipher()
            except OSError as error:
                self._fail(TlsFailed(str(error)))
                return
            if not is_flushed:
                events &= ~WRITABLE
        if self._is_shaking_hands:
            self._shake_hands()
            return
        passed = events & (self._wanted | ~(READABLE | WRITABLE))
        if passed and self._handler is not None:
            self._handler(passed)

    def _call_soon(self) -> None:
        if not self._has_news:
            self._has_news = True
            self._scheduler.call_soon(self._tell_news)

    def _tell_news(self) -> None:
        self._has_news = False
        if not self._is_closed and self._wanted & READABLE and self._handler is not None:
            self._handler(READABLE)

    # The handshake

    def _shake_hands(self) -> None:
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self._flush_cipher()
                    if not self._receive_cipher():
                        return
        except OSError as error:
            # The error is sent to the peer first.
            self._send_last_words()
            self._fail(TlsFailed(_words(error)))
            return
        self._is_shaking_hands = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        try:
            self._flush_cipher()
        except OSError as error:
            self._fail(TlsFailed(str(error)))
            return
        self._watch_below()
        if self._handler is not None:
            # Its owner may have bytes to send, or bytes to read.
            self._scheduler.call_soon(self._begin)

    def _begin(self) -> None:
        if self._is_closed or self._handler is None:
            return
        if self._wanted & WRITABLE:
            self._handler(WRITABLE)
        self._tell_news()

    def _handshake_is_late(self) -> None:
        self._deadline = None
        self._fail(TlsFailed(f"the TLS handshake took longer than {HANDSHAKE_MS_MAX // 1000} s"))

    def _send_last_words(self) -> None:
        with suppress(OSError):
            self._flush_cipher()

    def _fail(self, error: TlsFailed) -> None:
        """Let the owner find the failure when it receives."""
        self._failure = error
        if self._handler is not None and not self._is_closed:
            self._handler(READABLE)


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(error.strerror or error)


class TlsListening:
    """An address whose connections are encrypted. The certificate may be replaced at any time."""

    def __init__(self, listening: Listening, context: ssl.SSLContext, scheduler: Scheduler) -> None:
        self._listening = listening
        self.context = context
        self._scheduler = scheduler
        self._scratch = memoryview(bytearray(CIPHER_BYTES_AT_ONCE))
        self.address = listening.address

    def start(self, backlog: int, ready: Callable[[], None]) -> None:
        """Let peers connect."""
        self._listening.start(backlog, ready)

    def accept(self) -> Transport:
        """Return the next connection."""
        return TlsTransport(self._listening.accept(), self.context, self._scheduler, self._scratch)

    def pause(self) -> None:
        """Let peers wait."""
        self._listening.pause()

    def resume(self) -> None:
        """Accept again."""
        self._listening.resume()

    def close(self) -> None:
        """Give the address back."""
        self._listening.close()
