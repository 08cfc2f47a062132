"""The real disk: positioned reads and writes, and a bounded number of open descriptors.

A handle opens its file when it is used. When more than `descriptors_max` are open, one that was not used
lately is closed again, so that a process with a limit of 20,000 descriptors can serve 100,000 partitions.

Syncs and cold reads run in threads while the event loop appends, so a descriptor in use is pinned: only one
that nobody is using is closed, and only by the thread that made the disk. So what `descriptor` has lent to
the event loop cannot be closed, and its number given to another file, before the loop asks again. The kernel
reports a failed write-back to those who have the file open, so a descriptor with unsynced writes is closed
only if there is no other.
"""

import ctypes
import errno
import os
import shutil
import stat
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock as Mutex
from threading import get_ident
from typing import Final

from ottla.runtime.connections.page_cache import is_in_memory
from ottla.runtime.disk_errors import disk_error
from ottla.runtime.file_locks import RealLock
from ottla.world.disk import Buffer, Entry, Usage

DESCRIPTORS_MAX: Final = 10_000

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
# How many descriptors are looked at for a better one to close.
_CANDIDATES: Final = 32
# What one call takes, by POSIX's least.
_PIECES_MAX: Final = 1024
_KEEP_SIZE: Final = 1
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)


class Descriptors:
    """The open descriptors of a process's log files, at most this many."""

    __slots__ = ("_count_max", "_files", "mutex", "owner")

    def __init__(self, count_max: int = DESCRIPTORS_MAX) -> None:
        self._count_max = count_max
        self.owner = get_ident()
        # All files with a descriptor, oldest first. One that was used since it was last looked at goes to the
        # end instead of being closed (second chance), so that a use costs no reordering.
        self._files: OrderedDict[RealFile, None] = OrderedDict()
        self.mutex = Mutex()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: "RealFile") -> None:
        """Note that `file` was opened, and close others if there are too many. The mutex is held."""
        if get_ident() == self.owner:
            while len(self._files) >= self._count_max and self._close_one():
                pass
        self._files[file] = None

    def remove(self, file: "RealFile") -> None:
        """Note that `file` was closed. The mutex is held."""
        del self._files[file]

    def close_all(self) -> None:
        """Close every descriptor that nobody is using."""
        with self.mutex:
            for file in [file for file in self._files if file.is_evictable(is_pressing=True)]:
                self.remove(file)
                file.drop_descriptor()

    def _close_one(self) -> bool:
        """Close a descriptor, rather one without unsynced writes. Says whether there was any to close."""
        count = len(self._files)
        # The first look at a file that was used only notes that. At the second it may be the one to close.
        patience = min(_CANDIDATES, 2 * count)
        for looked_at in range(patience + count):
            file, _ = self._files.popitem(last=False)
            if file.is_evictable(is_pressing=looked_at >= patience):
                file.drop_descriptor()
                return True
            self._files[file] = None
        return False


class RealFile:
    """A file, opened when it is used."""

    __slots__ = ("_descriptor", "_descriptors", "_has_unsynced", "_pins", "_was_used", "path")

    def __init__(self, path: str, descriptors: Descriptors) -> None:
        self.path = path
        self._descriptors = descriptors
        self._descriptor = -1
        self._pins = 0
        self._was_used = False
        self._has_unsynced = False

    def __repr__(self) -> str:
        return f"<RealFile {self.path}>"

    def descriptor(self) -> int:
        """Return an open descriptor, for the event loop to send from. Ask again before each use."""
        with self._descriptors.mutex:
            if self._descriptor < 0:
                self._open()
            self._was_used = True
            return self._descriptor

    def pin(self) -> int:
        """Return a descriptor that stays open until `unpin`, whatever the other threads do."""
        with self._descriptors.mutex:
            if self._descriptor < 0:
                self._open()
            self._pins += 1
            self._was_used = True
            return self._descriptor

    def unpin(self) -> None:
        """Let the descriptor be closed again when others are needed more."""
        with self._descriptors.mutex:
            self._pins -= 1

    def create(self) -> None:
        """Make the file if it is not there. It is open then: who makes a file mostly writes to it next."""
        with self._descriptors.mutex:
            if self._descriptor < 0:
                self._open(os.O_CREAT, "create")

    def _open(self, flags: int = 0, operation: str = "open") -> None:
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, _FILE_MODE)
        except OSError as error:
            raise disk_error(error, self.path, operation) from error
        self._descriptors.add(self)

    def is_evictable(self, is_pressing: bool) -> bool:
        """Say whether the descriptor may be closed now. The mutex is held."""
        if self._pins:
            return False
        if self._was_used:
            self._was_used = False
            return is_pressing
        return is_pressing or not self._has_unsynced

    def drop_descriptor(self) -> None:
        """Close the descriptor. The mutex is held, and it is in no list any more."""
        os.close(self._descriptor)
        self._descriptor = -1

    def size(self) -> int:
        descriptor = self.pin()
        try:
            return os.fstat(descriptor).st_size
        except OSError as error:
            raise disk_error(error, self.path, "look at") from error
        finally:
            self.unpin()

    def read(self, position: int, length: int) -> bytes:
        descriptor = self._descriptor
        if descriptor < 0 or get_ident() != self._descriptors.owner:
            return self._read_pinned(position, length)
        # As in `write`: this thread alone closes it. Look-ups are so short that a pin would be a tenth.
        self._was_used = True
        try:
            content = os.pread(descriptor, length, position)
            if len(content) == length or not content:
                return content
            return self._read_on(descriptor, position, length, content)
        except OSError as error:
            raise disk_error(error, self.path, "read") from error

    def _read_pinned(self, position: int, length: int) -> bytes:
        descriptor = self.pin()
        try:
            content = os.pread(descriptor, length, position)
            if len(content) == length or not content:
                return content
            return self._read_on(descriptor, position, length, content)
        except OSError as error:
            raise disk_error(error, self.path, "read") from error
        finally:
            self.unpin()

    def _read_on(self, descriptor: int, position: int, length: int, first: bytes) -> bytes:
        """Read the rest after a read that came back short, which need not be the end of the file."""
        pieces = [first]
        done = len(first)
        while done < length:
            piece = os.pread(descriptor, length - done, position + done)
            if not piece:
                break
            pieces.append(piece)
            done += len(piece)
        return b"".join(pieces)

    def read_into(self, position: int, buffer: memoryview) -> int:
        descriptor = self.pin()
        done = 0
        try:
            while done < len(buffer):
                count = os.preadv(descriptor, (buffer[done:],), position + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            raise disk_error(error, self.path, "read") from error
        finally:
            self.unpin()
        return done

    def write(self, position: int, pieces: Sequence[Buffer]) -> None:
        descriptor = self._descriptor
        if descriptor < 0 or get_ident() != self._descriptors.owner:
            self._write_pinned(position, pieces)
            return
        # In the thread that alone closes descriptors of others, an open one needs no pin.
        self._has_unsynced = self._was_used = True
        try:
            if len(pieces) == 1:
                piece = pieces[0]
                written = os.pwrite(descriptor, piece, position)
                if written != len(piece):
                    _write_rest(descriptor, position, [piece], written)
            else:
                _write_rest(descriptor, position, pieces, 0)
        except OSError as error:
            raise disk_error(error, self.path, "write") from error

    def _write_pinned(self, position: int, pieces: Sequence[Buffer]) -> None:
        descriptor = self.pin()
        self._has_unsynced = True
        try:
            _write_rest(descriptor, position, pieces, 0)
        except OSError as error:
            raise disk_error(error, self.path, "write") from error
        finally:
            self.unpin()

    def truncate(self, size: int) -> None:
        descriptor = self.pin()
        self._has_unsynced = True
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise disk_error(error, self.path, "truncate") from error
        finally:
            self.unpin()

    def allocate(self, size: int) -> None:
        descriptor = self.pin()
        try:
            _fallocate(descriptor, size)
        finally:
            self.unpin()

    def is_in_memory(self, position: int, length: int) -> bool:
        return is_in_memory(self.descriptor(), position, length)

    def read_now(self, position: int, buffer: memoryview) -> int:
        wanted = (buffer,)
        descriptor = self.descriptor()
        try:
            count = os.preadv(descriptor, wanted, position, _NOWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            # A file system in memory (tmpfs) knows no such flag and needs none. One over a network may.
            count = os.preadv(descriptor, wanted, position)
        if count == 0:
            raise EOFError(f"the file ends before position {position}")
        return count

    def warm(self, position: int, length: int) -> None:
        remaining = length
        scratch = memoryview(bytearray(remaining))
        descriptor = self.pin()
        try:
            while remaining > 0:
                count = os.preadv(descriptor, [scratch[:remaining]], position)
                if count == 0:
                    raise EOFError(f"the file ends before position {position}")
                remaining -= count
                position += count
        finally:
            self.unpin()

    def is_removed(self) -> bool:
        descriptor = self._descriptor
        if descriptor >= 0 and get_ident() == self._descriptors.owner:
            # As in `write`. This is asked after each sync.
            try:
                return os.fstat(descriptor).st_nlink == 0
            except OSError as error:
                raise disk_error(error, self.path, "look at") from error
        descriptor = self.pin()
        try:
            return os.fstat(descriptor).st_nlink == 0
        except OSError as error:
            raise disk_error(error, self.path, "look at") from error
        finally:
            self.unpin()

    def sync(self) -> None:
        descriptor = self.begin_sync()
        try:
            os.fdatasync(descriptor)
        except OSError as error:
            raise disk_error(error, self.path, "sync") from error
        finally:
            self.end_sync()

    def begin_sync(self) -> int:
        """Return the descriptor to sync. It stays open until `end_sync`."""
        descriptor = self.pin()
        self._has_unsynced = False
        return descriptor

    def end_sync(self) -> None:
        """Take note that the sync is over, however it ended."""
        self.unpin()

    def close(self) -> None:
        with self._descriptors.mutex:
            if self._descriptor >= 0 and not self._pins:
                self._descriptors.remove(self)
                self.drop_descriptor()


def _write_rest(descriptor: int, position: int, pieces: Sequence[Buffer], written: int) -> None:
    """Write what is left of `pieces` after `written` bytes of them."""
    rest = [memoryview(piece) for piece in pieces if len(piece)]
    while True:
        while rest and written >= len(rest[0]):
            written -= len(rest[0])
            position += len(rest[0])
            del rest[0]
        if not rest:
            return
        if written:
            position += written
            rest[0] = rest[0][written:]
        written = os.pwritev(descriptor, rest[:_PIECES_MAX], position)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_libc: Final = ctypes.CDLL(None, use_errno=True)


def _fallocate(descriptor: int, size: int) -> None:
    """Reserve blocks up to `size` without changing the file's size. Python's own call would change it."""
    end = os.fstat(descriptor).st_size
    if size > end:
        # A file system that cannot do it says so. It is a hint: the write itself will report a full disk.
        _libc.fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(end), ctypes.c_int64(size - end))


def _syncfs(descriptor: int) -> None:
    """Sync the file system that a descriptor is of. Python has no call for it."""
    if _libc.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _syncs_whole_file_systems(system: str, release: str) -> bool:
    """Say whether `syncfs` reports errors, which it does since Linux 5.8. Without that it proves nothing."""
    numbers = release.split(".")
    try:
        return system == "Linux" and (int(numbers[0]), int(numbers[1])) >= (5, 8)
    except (ValueError, IndexError):
        return False


class RealDisk:
    """The file system of this machine."""

    __slots__ = ("_can_sync_all", "_sync_descriptors", "descriptors")

    def __init__(self, descriptors_max: int = DESCRIPTORS_MAX) -> None:
        self.descriptors = Descriptors(descriptors_max)
        self._can_sync_all = _syncs_whole_file_systems(os.uname().sysname, os.uname().release)
        # By path. They stay open: a descriptor gets the errors since it was opened, each once.
        self._sync_descriptors: dict[str, int] = {}

    def open(self, path: str, create: bool = False) -> RealFile:
        file = RealFile(path, self.descriptors)
        if create:
            file.create()
        return file

    def close(self) -> None:
        """Close all descriptors, for a process that lives on after its node has stopped."""
        self.descriptors.close_all()
        for descriptor in self._sync_descriptors.values():
            os.close(descriptor)
        self._sync_descriptors.clear()

    def list(self, path: str) -> list[Entry]:
        try:
            with os.scandir(path) as found:
                entries = [_entry(item.name, item.stat()) for item in found]
        except OSError as error:
            raise disk_error(error, path, "list") from error
        entries.sort()
        return entries

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def make_directory(self, path: str) -> bool:
        try:
            try:
                os.mkdir(path, _DIRECTORY_MODE)
            except FileNotFoundError:
                # Beside this, the standard library's `makedirs` would let others read the parents.
                self.make_directory(os.path.dirname(path))
                os.mkdir(path, _DIRECTORY_MODE)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise
                return False
        except OSError as error:
            raise disk_error(error, path, "make the directory") from error
        return True

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            raise disk_error(error, path, "remove") from error

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise disk_error(error, path, "remove") from error

    def rename(self, old: str, new: str) -> None:
        try:
            os.rename(old, new)
        except OSError as error:
            raise disk_error(error, old, f"rename to {new}") from error

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise disk_error(error, path, "sync the directory") from error

    def sync_all(self, path: str) -> bool:
        if not self._can_sync_all:
            return False
        try:
            descriptor = self._sync_descriptors.get(path)
            if descriptor is None:
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._sync_descriptors[path] = descriptor
            _syncfs(descriptor)
        except OSError as error:
            raise disk_error(error, path, "sync the file system of") from error
        return True

    def read_file(self, path: str) -> bytes:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb", buffering=0) as file:
                return file.read()
        except OSError as error:
            raise disk_error(error, path, "read") from error

    def write_file_atomically(self, path: str, content: bytes) -> None:
        temporary = path + ".tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
            try:
                _write_rest(descriptor, 0, [content], 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError as error:
            raise disk_error(error, path, "write") from error
        self.sync_directory(os.path.dirname(path) or ".")

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        try:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        except OSError as error:
            raise disk_error(error, path, "set the time of") from error

    def lock(self, path: str) -> RealLock:
        return RealLock(path)

    def identity(self, path: str) -> str:
        try:
            status = os.stat(path)
        except OSError as error:
            raise disk_error(error, path, "look at") from error
        # The number of the device may be another one after a reboot. No tool can set the time of a change.
        return f"{status.st_ino}-{status.st_ctime_ns}"

    def usage(self, path: str) -> Usage:
        try:
            status = os.statvfs(path)
        except OSError as error:
            raise disk_error(error, path, "look at") from error
        return Usage(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns // 1_000_000)
