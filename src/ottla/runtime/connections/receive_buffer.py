"""Where a connection's bytes arrive, and how they become frames.

A frame is a 32-bit size and that many bytes. Memory follows what has arrived, never what a size announces:
all connections of a loop receive into one shared buffer, and most requests are parsed right there. Only the
beginning of a frame whose rest has not come is copied to memory of the connection's own, which then at most
doubles with what arrives. So a silent connection costs nothing, and one that announced 100 MiB costs what it
sent. A frame of many megabytes gets pages of its own from the system: those count only when bytes arrive in
them, nothing has to be copied to grow, and they go back to the system as soon as the frame is served.

A frame handed out is a view. It is valid until the next `receive`, of any connection of the loop, because the
shared buffer is then written again.
"""

from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import Final, TypeAlias

from ottla.wire.errors import MalformedBytes

SHARED_BYTES: Final = 256 * 1024
OWN_BYTES_MIN: Final = 16 * 1024
PAGES_FROM_BYTES: Final = 4 << 20
"""From how many arrived bytes on a frame gets pages of its own."""

ReceiveInto: TypeAlias = Callable[[memoryview], int]
"""Fill a buffer with what has arrived, and return how many bytes: a transport's `receive_into`."""

_SIZE = Struct(">i")
_unpack_size = _SIZE.unpack_from


class SharedBuffer:
    """The memory into which all connections of a loop receive."""

    __slots__ = ("held_bytes", "view")

    def __init__(self, size: int = SHARED_BYTES) -> None:
        self.view = memoryview(bytearray(size))
        # How much memory all connections hold for themselves.
        self.held_bytes = 0


class ReceiveBuffer:
    """The bytes of one connection that were received and not yet served: `view[start:stop]`."""

    __slots__ = ("_held_bytes", "_is_shared", "_shared", "_start", "_stop", "_view", "frame_bytes_max")

    def __init__(self, shared: SharedBuffer, frame_bytes_max: int) -> None:
        self._shared = shared
        self.frame_bytes_max = frame_bytes_max
        self._view = shared.view
        self._start = 0
        self._stop = 0
        self._is_shared = True
        # What counts of the memory of its own: all of it, or the pages that bytes have arrived in.
        self._held_bytes = 0

    def receive(self, receive_into: ReceiveInto) -> int:
        """Take what has arrived. Return how many bytes came; 0 when the peer has closed."""
        if self._stop == self._start:
            # Nothing is left over, so the shared buffer can be filled from its beginning.
            if not self._is_shared:
                self.clear()
            self._start = 0
            self._stop = count = receive_into(self._view)
            return count
        assert not self._is_shared, "what was left over must have been kept before the loop went on"
        self._make_room()
        count = receive_into(self._view[self._stop :])
        self._stop += count
        if self._held_bytes < self._stop:
            self._hold(self._stop)
        return count

    def receive_frame(self, receive_into: ReceiveInto) -> memoryview | int:
        """Take what has arrived. Return it if it is one whole frame, as it mostly is, or its size."""
        if self._stop != self._start or not self._is_shared:
            return self.receive(receive_into)
        view = self._view
        count = receive_into(view)
        if count > 4 and _unpack_size(view)[0] == count - 4 <= self.frame_bytes_max:
            return view[4:count]
        self._start, self._stop = 0, count
        return count

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, or None while its end has not arrived."""
        start = self._start
        if self._stop - start < 4:
            return None
        (size,) = _SIZE.unpack_from(self._view, start)
        if not 0 <= size <= self.frame_bytes_max:
            raise MalformedBytes(
                f"a frame announces {size} bytes, but 0 to {self.frame_bytes_max} are allowed"
            )
        stop = start + 4 + size
        if stop > self._stop:
            return None
        self._start = stop
        return self._view[start + 4 : stop]

    def has_frame(self) -> bool:
        """Say whether `next_frame` would return or refuse one."""
        pending = self._stop - self._start
        return pending >= 4 and pending - 4 >= _SIZE.unpack_from(self._view, self._start)[0]

    def keep_rest(self) -> None:
        """Copy what is left over to memory of the connection's own, if it is not there yet."""
        if self._is_shared and self._stop > self._start:
            self._own(self._stop - self._start)

    def clear(self) -> None:
        """Let go of everything."""
        self._hold(0)
        self._view, self._start, self._stop, self._is_shared = self._shared.view, 0, 0, True

    @property
    def pending_bytes(self) -> int:
        """How many bytes have arrived and are not yet served."""
        return self._stop - self._start

    @property
    def own_bytes(self) -> int:
        """How much memory the connection holds for itself."""
        return self._held_bytes

    def _make_room(self) -> None:
        """Grow to the size of the frame, but at most to twice what has arrived."""
        arrived = self._stop - self._start
        wanted = OWN_BYTES_MIN
        if arrived >= 4:
            (size,) = _SIZE.unpack_from(self._view, self._start)
            wanted = max(wanted, min(4 + size, 2 * arrived))
        if self._start + wanted > len(self._view) or self._stop == len(self._view):
            self._own(max(wanted, arrived + OWN_BYTES_MIN))

    def _own(self, capacity: int) -> None:
        # Always new memory: views of the old one may still be held by the request that is being answered.
        arrived = self._stop - self._start
        has_pages = arrived >= PAGES_FROM_BYTES
        if has_pages:
            # Room for the whole frame, and for the beginning of the next: it costs nothing before it is used.
            (size,) = _SIZE.unpack_from(self._view, self._start)
            capacity = max(capacity, 4 + size + OWN_BYTES_MIN)
        own = memoryview(mmap(-1, capacity) if has_pages else bytearray(capacity))
        own[:arrived] = self._view[self._start : self._stop]
        self._view, self._start, self._stop, self._is_shared = own, 0, arrived, False
        self._hold(arrived if has_pages else capacity)

    def _hold(self, size_bytes: int) -> None:
        self._shared.held_bytes += size_bytes - self._held_bytes
        self._held_bytes = size_bytes
