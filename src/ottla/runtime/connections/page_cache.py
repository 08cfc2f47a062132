"""What the kernel has of a file in memory.

`cachestat` (Linux 6.5) counts the pages of a range that are there, in 2 us for a MiB. The C library has no
function for it, so it is called by number, which is the same on all machines. Where it is missing or refused,
nothing is known to be in memory.

Pages that are still on their way from the disk count as well. They come in order, so that the last byte
tells: it is read by `preadv` with RWF_NOWAIT, which does not wait for it.
"""

import ctypes
import errno
import os
from typing import Final

_CACHESTAT: Final = 451
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)
_PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")

_call = ctypes.CDLL(None).syscall
_call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
_call.restype = ctypes.c_long

# Position and length; then how many pages are in memory, and four more counts. The event loop alone asks, so
# that there is one of each.
_range: Final = (ctypes.c_uint64 * 2)()
_counts: Final = (ctypes.c_uint64 * 5)()
_range_at: Final = ctypes.addressof(_range)
_counts_at: Final = ctypes.addressof(_counts)
_last_byte: Final = (bytearray(1),)


def is_in_memory(descriptor: int, position: int, length: int) -> bool:
    """Say whether a whole range of a file is known to be in memory."""
    _range[0] = position
    _range[1] = length
    if _call(_CACHESTAT, descriptor, _range_at, _counts_at, 0) != 0:
        return False
    pages = (position + length - 1) // _PAGE_BYTES - position // _PAGE_BYTES + 1
    if _counts[0] < pages:
        return False
    try:
        return os.preadv(descriptor, _last_byte, position + length - 1, _NOWAIT) == 1
    except OSError as error:
        # A file system in memory knows no such flag.
        return error.errno == errno.EOPNOTSUPP
