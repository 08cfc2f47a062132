"""What storage asks of a disk: files with positioned reads and writes, names, and honest errors.

Paths are plain text joined with "/". Whatever goes wrong is a `DiskError` that names the path.

What a power cut may take away, and so what a caller has to ask for:

- written bytes, until `File.sync` of that file returned;
- a name that was made, changed or removed, until `Disk.sync_directory` of its directory returned.

`write_file_atomically` does both: after it, and after a power cut at any moment of it, the file has either
its old content or its new one.

A `File` is a logical handle. It costs no descriptor while idle: the disk opens descriptors on demand and
closes them when there are too many. It is found by its `path`, so code that renames a file or its
directory sets `path` of the handles that live on.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class Reason(Enum):
    """Why a disk refused, as far as a caller would act differently."""

    NO_SPACE = "no space left"
    IO_ERROR = "input/output error"
    READ_ONLY = "read-only file system"
    NOT_FOUND = "no such file or directory"
    EXISTS = "exists already"
    DENIED = "permission denied"
    LOCKED = "locked by another process"
    TOO_MANY_OPEN = "too many open files"
    OTHER = "failed"


class DiskError(Exception):
    """The disk did not do what it was asked to. Whether it did a part of it is not known."""

    def __init__(self, path: str, operation: str, reason: Reason, detail: str = "") -> None:
        super().__init__(f"cannot {operation} {path}: {detail or reason.value}")
        self.path = path
        self.operation = operation
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type["DiskError"], tuple[str, str, Reason, str]]:
        """Recovery workers are processes, and their errors have to reach the caller whole."""
        return type(self), (self.path, self.operation, self.reason, self.detail)


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int


class Usage(NamedTuple):
    """The bytes of the file system that a path lies on."""

    total_bytes: int
    usable_bytes: int


class File(Protocol):
    """A file, by handle. Reads and writes say where; there is no cursor."""

    path: str

    def size(self) -> int:
        """Return how many bytes the file has."""

    def read(self, position: int, length: int) -> bytes:
        """Read up to `length` bytes. Fewer come back at the end of the file only."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` and return how many bytes there were. Fewer at the end of the file only."""

    def write(self, position: int, pieces: Sequence[Buffer]) -> None:
        """Write all pieces one after the other, or raise. After an error any part may be there."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""

    def allocate(self, size: int) -> None:
        """Hint that the file will grow to `size` bytes. Its size stays what it is."""

    def is_in_memory(self, position: int, length: int) -> bool:
        """Say whether a range is known to be in memory, so that reading it would not wait for the disk."""

    def read_now(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` as far as that needs no waiting for the disk, and return how many bytes came.

        0 says that the range has to be warmed first. Raises `EOFError` at the end of the file, and `OSError`.
        """

    def warm(self, position: int, length: int) -> None:
        """Bring a range into memory, blocking. Raises `EOFError` if it ends early, and `OSError`."""

    def is_removed(self) -> bool:
        """Say whether the file has no name any more, so that what is written to it is lost."""

    def sync(self) -> None:
        """Make everything written so far survive a power cut.

        After an error nothing is known of the bytes, and a second try may succeed without having written
        them. So an error here is final: the file is not to be trusted until it was read again.
        """

    def close(self) -> None:
        """Give back what the handle holds. The next use opens it again."""


class Lock(Protocol):
    """An exclusive lock on a directory, held against other processes."""

    def release(self) -> None:
        """Let others have it."""

    def is_in_place(self) -> bool:
        """Say whether the locked file is still what its path names. Otherwise the directory is gone."""


class Disk(Protocol):
    """A file system, or a part of one."""

    def open(self, path: str, create: bool = False) -> File:
        """Return a handle.

        With `create` the file is there when this returns. Without it nothing is looked at before the first
        use, so that a hundred thousand handles cost no system call; a missing file shows then.
        """

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory, sorted by name."""

    def exists(self, path: str) -> bool:
        """Say whether there is a file or directory of that name."""

    def make_directory(self, path: str) -> bool:
        """Make a directory, and its parents. One that is there already is fine, and False says so."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory. A file of the new name is replaced."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory survive a power cut."""

    def sync_all(self, path: str) -> bool:
        """Make everything written to the file system of `path` survive a power cut, bytes and names.

        False if that is not to be had for certain here: then files have to be synced one by one.
        """

    def read_file(self, path: str) -> bytes:
        """Return the whole content of a file."""

    def write_file_atomically(self, path: str, content: bytes) -> None:
        """Replace the content of a file by way of `<path>.tmp`, and make it survive a power cut."""

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set when a file was last modified."""

    def lock(self, path: str) -> Lock:
        """Lock the file `path`, made if need be, against other processes. Held elsewhere: LOCKED."""

    def identity(self, path: str) -> str:
        """Return what tells a file from every copy of it, for as long as nobody changes the file."""

    def usage(self, path: str) -> Usage:
        """Return the bytes, in all and usable, of the file system that `path` lies on."""
