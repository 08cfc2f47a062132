"""Syncs that the kernel does by itself: the event loop asks and gets the results, without a thread of ours.

A thread that syncs has to take Python's lock four times until the loop knows of it, and on two cores each
time wakes the other one. Measured with one file and one sync after the other: 226 us of CPU and 429 us of
time by a thread, 47 us and 357 us by the kernel's asynchronous I/O (`io_submit` with `IOCB_CMD_FDSYNC`, since
Linux 4.18), which runs `fdatasync` in a worker of its own.

The C library has no functions for it, so the system calls are made by number. Where a machine has other
numbers, or a kernel or sandbox refuses, there are threads (see `flusher.py`).
"""

import ctypes
import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, Final, NamedTuple

UNDER_WAY_MAX: Final = 64


class _Numbers(NamedTuple):
    """What the system calls are called."""

    setup: int
    destroy: int
    submit: int
    take: int


_NUMBERS: Final = {
    "x86_64": _Numbers(setup=206, destroy=207, submit=209, take=208),
    "aarch64": _Numbers(setup=0, destroy=1, submit=2, take=4),
}
_FDATASYNC: Final = 3
_TELL_DESCRIPTOR: Final = 1


class _Order(ctypes.Structure):
    """The kernel's `struct iocb`, on a little-endian machine."""

    _fields_ = (
        ("place", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("operation", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("position", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("told_by", ctypes.c_uint32),
    )


class _Result(ctypes.Structure):
    """The kernel's `struct io_event`."""

    _fields_ = (
        ("place", ctypes.c_uint64),
        ("order", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("second_result", ctypes.c_int64),
    )


class KernelSyncs:
    """Syncs that are under way. All methods are called in the loop's thread."""

    def __init__(self, loop: AbstractEventLoop, done: Callable[[list[tuple[Any, int]]], None]) -> None:
        """`done` is called with what was synced, each with 0 or an error number. Raises OSError."""
        self._loop = loop
        self._done = done
        numbers = _NUMBERS.get(os.uname().machine)
        if numbers is None:
            raise OSError("the numbers of this machine's system calls are not known")
        self._numbers = numbers
        # These calls do not block, so they keep Python's lock: giving it up would cost more than they do.
        self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._context = ctypes.c_ulong(0)
        if self._call(numbers.setup, UNDER_WAY_MAX, ctypes.byref(self._context)) != 0:
            raise OSError(ctypes.get_errno(), "the kernel does no asynchronous I/O here")
        self._told_by = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._orders = (_Order * UNDER_WAY_MAX)()
        self._order_at = [(ctypes.POINTER(_Order) * 1)(ctypes.pointer(order)) for order in self._orders]
        self._results = (_Result * UNDER_WAY_MAX)()
        self._what: list[Any] = [None] * UNDER_WAY_MAX
        self._free = list(range(UNDER_WAY_MAX))
        for place, order in enumerate(self._orders):
            order.place = place
            order.operation = _FDATASYNC
            order.flags = _TELL_DESCRIPTOR
            order.told_by = self._told_by
        loop.add_reader(self._told_by, self._take)

    def begin(self, descriptor: int, what: object) -> bool:
        """Have a file synced. Says whether the kernel took the order; if not, somebody else has to do it."""
        if not self._free:
            return False
        place = self._free[-1]
        self._orders[place].descriptor = descriptor
        if self._call(self._numbers.submit, self._context, ctypes.c_long(1), self._order_at[place]) != 1:
            return False
        self._free.pop()
        self._what[place] = what
        return True

    def close(self) -> None:
        """Wait until nothing is under way."""
        self._loop.remove_reader(self._told_by)
        self._call(self._numbers.destroy, self._context)
        os.close(self._told_by)

    def _take(self) -> None:
        """Tell of all that has ended."""
        os.eventfd_read(self._told_by)
        count = self._call(
            self._numbers.take,
            self._context,
            ctypes.c_long(0),
            ctypes.c_long(UNDER_WAY_MAX),
            self._results,
            None,
        )
        ended = []
        for result in self._results[: max(count, 0)]:
            place = result.place
            ended.append((self._what[place], -result.result))
            self._what[place] = None
            self._free.append(place)
        self._done(ended)
