"""One client's connection: a transport on the event loop, requests in, answers out, in order.

    readable -> receive -> next frame -> session.receive -> answer -> transport, or outbox

Back-pressure goes both ways. While an answer is pending (a parked fetch, a group commit) or not yet sent (a
peer that does not read), no further request of the connection is parsed, and nothing more is received than
lies in its buffer. The reader is taken off the loop only when bytes arrive while the connection may not
read: most clients wait for the answer, so most parked requests cost no system call.

Not done here: reading and writing the protocol (the session does), deciding who may connect and which
connection is too old (the listener does).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ottla.runtime.connections.outbox import Flushed, HeldAnswer, Outbox, Piece
from ottla.runtime.connections.receive_buffer import ReceiveBuffer, SharedBuffer
from ottla.world.disk import DiskError
from ottla.world.network import GONE, READABLE, WRITABLE, Transport
from ottla.world.scheduler import Scheduler, Timer
from ottla.world.workers import Run

OWN_BYTES_ALWAYS: Final = 1 << 20
"""What a connection may hold for the frame it receives, however much all of them hold."""
UNSENT_BYTES_MAX: Final = 64 * 1024
"""Answers to pipelined requests are collected up to here before they are sent."""

# Why no further request is served.
_PENDING: Final = 1
_UNSENT: Final = 2
_MUTED: Final = 4
_SHORT_OF_MEMORY: Final = 8
_ENDING: Final = 16


class Session(Protocol):
    """Who serves the requests of a connection."""

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        """Serve a request. Return the answer, nothing if none is due, or None: `answer_later` follows."""

    def close(self) -> None:
        """Take note that the connection is closed."""


class _Nobody:
    """The session of a closed connection."""

    def receive(self, frame: memoryview) -> Sequence[Piece] | None:
        raise AssertionError(f"received {len(frame)} bytes on a closed connection")

    def close(self) -> None:
        """Nothing is left to let go."""


_NOBODY: Final = _Nobody()


class Owner(Protocol):
    """Who accepted the connection and keeps count of it."""

    shared_buffer: SharedBuffer
    staging: memoryview
    """Memory to send from, shared by all connections of the loop."""
    frame_bytes_max: int
    tick: int
    """Coarse time in seconds: reading a clock for each request would cost more than it tells."""

    @property
    def is_short_of_memory(self) -> bool:
        """Say whether connections hold as much memory for received bytes as they may."""

    @property
    def run(self) -> Run:
        """Does blocking work elsewhere, then calls back on the loop."""

    def connection_closed(self, connection: "Connection", reason: Exception | None) -> None:
        """Take note: it is closed, by the peer (None) or because of an error."""


class Connection:
    """A connected client."""

    __slots__ = (
        "_buffer",
        "_events",
        "_holds",
        "_is_resuming",
        "_is_warming",
        "_outbox",
        "_owner",
        "_receive",
        "_receive_into",
        "_release",
        "_scheduler",
        "_send_bytes",
        "_session",
        "_transport",
        "_unmute",
        "active_tick",
        "frame_tick",
        "is_closed",
        "listener_name",
        "local",
        "peer_host",
        "peer_port",
    )

    def __init__(
        self,
        scheduler: Scheduler,
        transport: Transport,
        owner: Owner,
        listener_name: str,
        make_session: Callable[["Connection"], Session],
    ) -> None:
        self._scheduler = scheduler
        self._transport = transport
        # Bound once: these two are called for every request.
        self._receive_into = transport.receive_into
        self._send_bytes = transport.send
        self._owner = owner
        self.listener_name = listener_name
        self.local = transport.local
        self.peer_host = transport.peer_host
        self.peer_port = transport.peer_port
        self._buffer = ReceiveBuffer(owner.shared_buffer, owner.frame_bytes_max)
        # Made when something has to wait: of thousands of connections, most never need it.
        self._outbox: Outbox | None = None
        # Bits: whatever is set has to go before the next request is served.
        self._holds = 0
        self._is_resuming = False
        self._is_warming = False
        self._unmute: Timer | None = None
        # What is to be called when the answer is sent whose memory is counted.
        self._release: Callable[[], None] | None = None
        self.active_tick = owner.tick
        # When the frame that is not yet complete began to arrive; 0 while there is none.
        self.frame_tick = 0
        self.is_closed = False
        self._session: Session = make_session(self)
        self._receive = self._session.receive
        self._events = READABLE
        transport.watch(self._on_event, READABLE)

    # What the session calls

    def answer_later(self, pieces: Sequence[Piece]) -> None:
        """Send an answer that was pending, then go on with what has arrived meanwhile."""
        if self.is_closed:
            if type(pieces) is HeldAnswer:
                pieces.release()
            return
        assert self._holds & _PENDING, "only a pending request can be answered later"
        self._holds &= ~_PENDING
        if type(pieces) is HeldAnswer:
            self._release = pieces.release
        self._send_answer(pieces)
        if self._release is not None and not self._holds & _UNSENT:
            self._let_go()
        self._maybe_resume()

    def use_session(self, session: Session) -> None:
        """Let another session serve from now on: a client that has logged in needs no login any more."""
        if not self.is_closed:
            self._session = session
            self._receive = session.receive

    def limit_frames(self, frame_bytes_max: int | None) -> None:
        """Bound the size of a frame, or with None let the bound of all connections hold."""
        self._buffer.frame_bytes_max = (
            self._owner.frame_bytes_max if frame_bytes_max is None else frame_bytes_max
        )

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate of the peer, as DER, if it has shown one."""
        return self._transport.peer_certificate

    def fail(self, error: Exception) -> None:
        """Close because of an error."""
        self.close(error)

    def has_hung_up(self) -> bool:
        """Say whether the peer has closed, and all that it had sent is read."""
        try:
            return self.is_closed or self._transport.is_closed_by_peer()
        except BlockingIOError:
            return False
        except OSError:
            return True

    def mute(self, milliseconds: int) -> None:
        """Read no further request for a while: how a client that is over its quota is slowed down."""
        if self.is_closed or milliseconds <= 0:
            return
        if self._unmute is not None:
            self._unmute.cancel()
        self._holds |= _MUTED
        self._unmute = self._scheduler.call_later(milliseconds, self._on_unmute)

    # What the owner calls

    def close(self, reason: Exception | None = None) -> None:
        """Close now. Whatever was not sent is lost."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._unmute is not None:
            self._unmute.cancel()
        self._transport.close()
        session, self._session = self._session, _NOBODY
        self._receive = _NOBODY.receive
        # A connection and its session know each other, so neither goes before the next garbage collection.
        # What is large must not wait for that.
        self._buffer.clear()
        if self._outbox is not None:
            self._outbox.clear()
        self._let_go()
        # The owner learns of it first. If it counted on because ending the session failed, there
        # would be room for one less from then on, and in the end for none.
        self._owner.connection_closed(self, reason)
        session.close()

    def end(self) -> None:
        """Take up no further request, and close when what was taken up is answered."""
        self._holds |= _ENDING
        self._maybe_resume()

    @property
    def is_idle(self) -> bool:
        """Say whether nothing is under way: no request, no answer, no part of a frame."""
        return not self._holds and not self._buffer.pending_bytes

    @property
    def has_answered(self) -> bool:
        """Say whether all requests that were taken up are answered, and the answers sent."""
        return not self._holds & (_PENDING | _UNSENT)

    @property
    def is_waiting_for_frame(self) -> bool:
        """Say whether a frame has begun, and only the peer or a lack of memory keeps it from ending."""
        return not self._holds & ~_SHORT_OF_MEMORY and self.frame_tick != 0

    def memory_is_back(self) -> None:
        """Go on receiving, if a lack of memory was what kept the connection from it."""
        if self._holds & _SHORT_OF_MEMORY:
            self._holds &= ~_SHORT_OF_MEMORY
            self._maybe_resume()

    @property
    def is_sending(self) -> bool:
        """Say whether an answer waits for the peer to read."""
        return bool(self._holds & _UNSENT)

    @property
    def holds_counted_memory(self) -> bool:
        """Say whether an answer waits for the peer whose memory is counted against a budget."""
        return self._release is not None

    @property
    def pending_bytes(self) -> int:
        """How many bytes have arrived and are not yet served."""
        return self._buffer.pending_bytes

    @property
    def own_bytes(self) -> int:
        """How much memory the connection holds for what it received."""
        return self._buffer.own_bytes

    # The poller's events

    def _on_event(self, mask: int) -> None:
        if mask & WRITABLE:
            self._flush()
            self._maybe_resume()
            if self.is_closed or mask == WRITABLE:
                return
        if self._holds:
            self._stop_reading(mask)
            return
        try:
            received = self._buffer.receive_frame(self._receive_into)
        except BlockingIOError:
            return
        except OSError as error:
            self._peer_is_gone(error)
            return
        if not received:
            self._peer_is_gone(None)
            return
        self.active_tick = self._owner.tick
        if type(received) is memoryview:
            self._serve_one(received)
            return
        self._serve()
        if self._buffer.own_bytes > OWN_BYTES_ALWAYS and self._owner.is_short_of_memory:
            self._holds |= _SHORT_OF_MEMORY
            self._watch(self._events & ~READABLE)

    def _serve_one(self, frame: memoryview) -> None:
        """Serve a request that came alone: what `_serve` does, in 3 us less of a tiny request's 20."""
        try:
            answer = self._receive(frame)
        except Exception as error:
            self.close(error)
            return
        if answer is None:
            self._holds |= _PENDING
        else:
            self._send_answer(answer)

    def _serve(self) -> None:
        """Serve all requests that are complete, until one has to wait. One call sends all their answers."""
        buffer, receive = self._buffer, self._receive
        answers: list[Piece] = []
        is_first_part = False
        unsent_bytes = 0
        try:
            while (frame := buffer.next_frame()) is not None:
                is_first_part = True
                answer = receive(frame)
                if answer is None:
                    self._holds |= _PENDING
                    break
                for piece in answer:
                    answers.append(piece)
                    unsent_bytes += len(piece)
                if unsent_bytes > UNSENT_BYTES_MAX or self._holds:
                    break
        except Exception as error:
            # Bytes that are no request, a refusal, or a bug of ours: in each case the next bytes mean
            # nothing. Answers to the requests before it are still due.
            self._send(answers)
            self.close(error)
            return
        if is_first_part and not buffer.pending_bytes:
            self.frame_tick = 0
        else:
            buffer.keep_rest()
            if is_first_part or not self.frame_tick:
                self.frame_tick = self._owner.tick
        if answers:
            self._send(answers)
        if self._holds != _PENDING and buffer.pending_bytes:
            self._maybe_resume()

    def _on_unmute(self) -> None:
        self._unmute = None
        self._holds &= ~_MUTED
        self._maybe_resume()

    def _resume(self) -> None:
        self._is_resuming = False
        if not self.is_closed and not self._holds:
            self._serve()

    # Sending

    def _send_answer(self, pieces: Sequence[Piece]) -> None:
        """Send the answer to one request, if any is due."""
        if len(pieces) <= 1:
            self._send(pieces)
        elif not self.is_closed:
            # Bytes alone come as one piece, so this has ranges of files.
            self._queue(pieces)

    def _send(self, answers: Sequence[Piece]) -> None:
        """Send answers: in one call if they are all bytes and the transport takes them, as it mostly does."""
        if not answers or self.is_closed:
            return
        if not self._holds & _UNSENT:
            try:
                # A range of a file cannot be joined: such an answer takes the other way.
                data = answers[0] if len(answers) == 1 else b"".join(answers)  # type: ignore[arg-type]
                sent = self._send_bytes(data)  # type: ignore[arg-type]
            except TypeError:
                pass
            except BlockingIOError:
                answers = [data]
            except OSError as error:
                self.close(error)
                return
            else:
                if sent == len(data):
                    return
                answers = [memoryview(data)[sent:]]  # type: ignore[arg-type]
        self._queue(answers)

    def _queue(self, answers: Sequence[Piece]) -> None:
        if self._outbox is None:
            self._outbox = Outbox(self._transport, self._owner.staging)
        self._outbox.add(answers)
        self._holds |= _UNSENT
        self._flush()

    def _flush(self) -> None:
        """Send what waits in the outbox, as far as peer and disk allow."""
        if self._is_warming:
            return
        assert self._outbox is not None, "it is made before anything waits to be sent"
        try:
            flushed = self._outbox.flush()
        except (OSError, EOFError, DiskError) as error:
            self.close(error)
            return
        self.active_tick = self._owner.tick
        if flushed is Flushed.SOCKET_FULL:
            self._watch(self._events | WRITABLE)
            return
        self._watch(self._events & ~WRITABLE)
        if flushed is Flushed.COLD:
            self._is_warming = True
            self._owner.run(self._outbox.cold_range().warm, self._on_warm)
        else:
            self._holds &= ~_UNSENT
            self._let_go()

    def _let_go(self) -> None:
        """The answer whose memory is counted is sent, or never will be."""
        if self._release is not None:
            release, self._release = self._release, None
            release()

    def _on_warm(self, error: Exception | None) -> None:
        self._is_warming = False
        if self.is_closed:
            return
        if error is not None:
            self.close(error)
            return
        self._flush()
        self._maybe_resume()

    # Flow control

    def _watch(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._transport.change(events)

    def _stop_reading(self, mask: int) -> None:
        """Bytes came while none are wanted: leave them in the kernel, unless the peer closes."""
        if mask & GONE:
            self.close()
            return
        try:
            if self._transport.is_closed_by_peer() and not self._buffer.has_frame():
                self.close()
                return
        except BlockingIOError:
            return
        except OSError as error:
            self.close(error)
            return
        self._watch(self._events & ~READABLE)

    def _peer_is_gone(self, error: Exception | None) -> None:
        """Close, once everything that came whole is served: it counts, even if the peer reads no answer."""
        if not self._buffer.has_frame():
            self.close(error)

    def _maybe_resume(self) -> None:
        if self.is_closed or self._holds:
            if self._holds & _ENDING and self.has_answered:
                self.close()
            return
        if not self._events & READABLE:
            if self.frame_tick and self._buffer.own_bytes <= OWN_BYTES_ALWAYS:
                # The peer could not send the rest while we did not read: its time begins again. But who holds
                # much memory has to be done with it.
                self.frame_tick = self._owner.tick
            self._watch(self._events | READABLE)
        if not self._is_resuming and self._buffer.has_frame():
            # In a turn of its own: a chain of connections that wake each other must not become a deep
            # recursion.
            self._is_resuming = True
            self._scheduler.call_soon(self._resume)
