"""A disk in memory that loses at a power cut what a real one may lose, and fails on demand.

It is a `Disk` as `ottla.world.disk` states it. What was not synced may be gone, half there or torn after
`cut_power` (see `power_cut`); what was synced is there. The same calls with the same seed give the same
bytes and the same `trace`, whatever the hash seed of the process.

Ways to make it fail:

- `cut_power_after(n)`: the n-th operation from now that changes something raises `PowerCut`, and so does
  every one after it, until `cut_power` or `kill` starts the machine again;
- `fail("sync", Reason.IO_ERROR, path="...")`: an operation fails. A failed sync also forgets what it
  should have written, as Linux does: the bytes can still be read, a second sync succeeds, and a power cut
  takes them;
- `capacity_bytes`: a write that does not fit writes what fits and raises NO_SPACE;
- `read_only`: every change raises READ_ONLY;
- `rot(path)`: flips one bit of a file at rest;
- `sync_lies`: syncs do nothing. It is there to prove that a test would see a missing one.

It is stricter than a real disk in one thing: a handle is looked up by its path at every use, as if its
descriptor had just been closed for lack of room. It keeps no time: `now_ms` is set by the test.
"""

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Final
from zlib import crc32

from ottla.testing.disk_nodes import copy_directory, copy_node, settle_names, walk
from ottla.testing.power_cut import Dice, DirectoryNode, FileNode, NameChange, Node, cut_power_of_names
from ottla.world.disk import Buffer, DiskError, Entry, Reason, Usage

_TERABYTE: Final = 1 << 40
_NOTED_MAX: Final = 1000
_SYNCS: Final = frozenset(("sync", "sync_directory", "sync_all"))


class PowerCut(BaseException):
    """The machine lost power. Not an `Exception`: no code that could run then may catch it."""


@dataclass(slots=True)
class Counters:
    """What was asked of the disk, and how long a disk of the given speed would have taken."""

    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    written_bytes: int = 0
    cuts: int = 0
    syncs: int = 0
    directory_syncs: int = 0
    name_changes: int = 0
    busy_us: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
    """What an operation costs. The defaults are those of a common server disk."""

    read_us: int = 5
    write_us: int = 10
    sync_us: int = 700
    name_change_us: int = 20

    def slower(self, factor: int) -> "Speed":
        return Speed(
            self.read_us * factor,
            self.write_us * factor,
            self.sync_us * factor,
            self.name_change_us * factor,
        )


@dataclass(slots=True)
class Fault:
    """An operation that is going to fail."""

    operation: str
    reason: Reason
    path: str
    skip: int
    times: int | None

    def strikes(self, operation: str, path: str) -> bool:
        """Say whether this call fails, and count it."""
        if operation != self.operation or self.path not in path or self.times == 0:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class SimulatedFile:
    """A handle on a file of a `SimulatedDisk`."""

    __slots__ = ("_boot", "_disk", "path")

    def __init__(self, disk: "SimulatedDisk", path: str) -> None:
        self.path = path
        self._disk = disk
        self._boot = disk.boots

    def size(self) -> int:
        return len(self._node("read").content)

    def read(self, position: int, length: int) -> bytes:
        node = self._node("read")
        self._disk.count_read(self.path, length)
        return bytes(node.content[position : position + length])

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, position: int, pieces: Sequence[Buffer]) -> None:
        node = self._node("write")
        disk, data = self._disk, b"".join(pieces)
        disk.begin_change("write", self.path, position, data)
        room = disk.room_for(position + len(data) - len(node.content))
        node.modified_ms = disk.now_ms
        if room < 0:
            fitting = data[: max(0, len(data) + room)]
            if fitting:
                node.write(position, fitting)
            raise DiskError(self.path, "write", Reason.NO_SPACE)
        node.write(position, data)
        disk.end_change(self.path)

    def truncate(self, size: int) -> None:
        node = self._node("truncate")
        self._disk.begin_change("truncate", self.path, size)
        node.modified_ms = self._disk.now_ms
        node.truncate(size)
        self._disk.counters.cuts += 1
        self._disk.end_change(self.path)

    def allocate(self, size: int) -> None:
        node = self._node("allocate")
        if self._disk.room_for(size - len(node.content)) < 0:
            raise DiskError(self.path, "allocate", Reason.NO_SPACE)

    def is_in_memory(self, position: int, length: int) -> bool:
        return position + length <= self.size()

    def read_now(self, position: int, buffer: memoryview) -> int:
        count = self.read_into(position, buffer)
        if count == 0:
            raise EOFError(f"the file ends before position {position}")
        return count

    def warm(self, position: int, length: int) -> None:
        if len(self.read(position, length)) < length:
            raise EOFError(f"the file ends before position {position + length}")

    def is_removed(self) -> bool:
        return not isinstance(self._disk.find_node(self.path), FileNode)

    def sync(self) -> None:
        node = self._node("sync")
        try:
            self._disk.begin_change("sync", self.path)
            if not self._disk.sync_lies:
                node.sync()
            self._disk.end_change(self.path)
        except DiskError:
            node.forget_changes()
            self._disk.has_forgotten = True
            raise

    def close(self) -> None:
        """There is nothing to give back."""

    def _node(self, operation: str) -> FileNode:
        assert self._boot == self._disk.boots, f"{self.path}: a handle from before the machine went down"
        node = self._disk.find_node(self.path)
        if not isinstance(node, FileNode):
            raise DiskError(self.path, operation, Reason.NOT_FOUND)
        return node


class SimulatedLock:
    """A lock on a file of a `SimulatedDisk`."""

    def __init__(self, disk: "SimulatedDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def is_in_place(self) -> bool:
        """Say whether there is a file to be locked."""
        return self._disk.exists(self._path)

    def release(self) -> None:
        self._disk.locks.discard(self._path)


class SimulatedDisk:
    """A file system in memory. `seed` decides nothing but what `cut_power` and `rot` do by themselves."""

    def __init__(self, seed: int = 0, *, speed: Speed | None = None) -> None:
        self.rng = Random(seed)
        self.now_ms = 0
        self.speed = speed or Speed()
        self.counters = Counters()
        self.capacity_bytes: int | None = None
        self.read_only = False
        self.sync_lies = False
        self.locks: set[str] = set()
        # Whether a sync has failed, so that a process reads what a power cut would take, synced or not.
        self.has_forgotten = False
        # How often the machine was started. A handle belongs to one start.
        self.boots = 0
        self._root = DirectoryNode(0)
        self._names: list[NameChange] = []
        self._found: dict[str, Node] = {}
        self._found_durable: dict[str, FileNode | None] = {}
        self._faults: list[Fault] = []
        self._changes_left: int | None = None
        self._trace = sha256()
        # Changes that are not in the digest yet.
        self._noted: list[str] = []

    # The disk, as `ottla.world.disk.Disk` has it.

    def open(self, path: str, create: bool = False) -> SimulatedFile:
        if create and self.find_node(path) is None:
            self._make(path, FileNode(self.now_ms))
        return SimulatedFile(self, path)

    def list(self, path: str) -> list[Entry]:
        directory = self._directory(path, "list")
        return [_entry(name, directory.entries[name]) for name in sorted(directory.entries)]

    def exists(self, path: str) -> bool:
        return self.find_node(path) is not None

    def make_directory(self, path: str) -> bool:
        is_new = self.find_node(path) is None
        made = ""
        for part in path.split("/"):
            made = f"{made}/{part}" if made else part
            if part and self.find_node(made) is None:
                self._make(made, DirectoryNode(self.now_ms))
        return is_new

    def remove(self, path: str) -> None:
        if not isinstance(self.find_node(path), FileNode):
            raise DiskError(path, "remove", Reason.NOT_FOUND)
        self._unmake(path)

    def remove_tree(self, path: str) -> None:
        for entry in self.list(path):
            inner = f"{path}/{entry.name}"
            if entry.is_directory:
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self._unmake(path)

    def rename(self, old: str, new: str) -> None:
        node = self.find_node(old)
        if node is None:
            raise DiskError(old, "rename", Reason.NOT_FOUND)
        replaced = self.find_node(new)
        if isinstance(replaced, DirectoryNode) and replaced.entries:
            raise DiskError(new, "rename", Reason.EXISTS)
        source, old_name = self._parent(old, "rename")
        target, new_name = self._parent(new, "rename")
        self.begin_change("rename", old, 0, new.encode())
        self._change_names(NameChange(source, old_name, target, new_name, node))
        self.end_change(old)

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path, "sync_directory")
        self.begin_change("sync_directory", path)
        if not self.sync_lies:
            self._found_durable.clear()
            pending: list[NameChange] = []
            for change in self._names:
                if change.involves(directory):
                    change.apply_to_durable()
                else:
                    pending.append(change)
            self._names = pending
        self.end_change(path)

    def sync_all(self, path: str) -> bool:
        self._directory(path, "sync_all")
        self.begin_change("sync_all", path)
        if not self.sync_lies:
            self._found_durable.clear()
            for change in self._names:
                change.apply_to_durable()
            self._names = []
            for node in walk(self._root):
                if isinstance(node, FileNode):
                    node.sync()
        self.end_change(path)
        return True

    def read_file(self, path: str) -> bytes:
        handle = self.open(path)
        return handle.read(0, handle.size())

    def write_file_atomically(self, path: str, content: bytes) -> None:
        handle = self.open(f"{path}.tmp", create=True)
        handle.truncate(0)
        handle.write(0, (content,))
        handle.sync()
        self.rename(f"{path}.tmp", path)
        self.sync_directory(path.rpartition("/")[0])

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        node = self.find_node(path)
        if node is None:
            raise DiskError(path, "set_modified_ms", Reason.NOT_FOUND)
        node.modified_ms = modified_ms

    def lock(self, path: str) -> SimulatedLock:
        if path in self.locks:
            raise DiskError(path, "lock", Reason.LOCKED)
        self.open(path, create=True)
        self.locks.add(path)
        return SimulatedLock(self, path)

    def identity(self, path: str) -> str:
        # Nobody copies files here.
        return path

    def usage(self, path: str) -> Usage:
        self._directory(path, "usage")
        total = _TERABYTE if self.capacity_bytes is None else self.capacity_bytes
        return Usage(total, max(0, total - self.used_bytes()))

    # What happens to machines.

    def cut_power_after(self, changes: int) -> None:
        """Let `changes` more operations that change something begin; power goes in the middle of the last."""
        assert changes > 0
        self._changes_left = changes

    def halt(self) -> None:
        """Let no operation change anything any more, until `cut_power` or `kill`."""
        self._changes_left = 0

    def cut_power(self, rng: Random | None = None) -> None:
        """Lose what a power cut loses, and start again."""
        dice = Dice(rng or self.rng)
        cut_power_of_names(self._names, dice)
        self._names = []
        files = [node for node in settle_names(self._root) if isinstance(node, FileNode)]
        changed = [index for index, node in enumerate(files) if node.changes]
        torn = dice.choice(changed) if changed and dice.coin() else -1
        for index, node in enumerate(files):
            node.cut_power(dice, tear=index == torn)
        self.has_forgotten = False
        self._start_again()

    def kill(self) -> None:
        """End the process with no chance to tidy up, but keep the machine: what was written stays."""
        self._start_again()

    def fail(
        self, operation: str, reason: Reason, path: str = "", *, skip: int = 0, times: int | None = 1
    ) -> Fault:
        """Make an operation fail whose path contains `path`, after `skip` that pass.

        With `times` None it fails for ever.
        """
        fault = Fault(operation, reason, path, skip, times)
        self._faults.append(fault)
        return fault

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Fail nothing meanwhile: somebody looks whom its machine does not know of."""
        faults, self._faults = self._faults, []
        try:
            yield
        finally:
            self._faults = faults

    def heal(self) -> None:
        """Forget every way to fail."""
        self._faults.clear()
        self.capacity_bytes = None
        self.read_only = False
        self.sync_lies = False

    def is_at_rest(self, path: str) -> bool:
        """Say whether a file has bytes, and all of them are synced."""
        node = self.find_node(path)
        return isinstance(node, FileNode) and len(node.content) > 0 and not node.changes

    def rot(self, path: str, rng: Random | None = None, spared: Container[int] = ()) -> int:
        """Flip one bit of a file at rest, but of none of the spared bytes, and return its byte position."""
        node = self.find_node(path)
        assert isinstance(node, FileNode)
        assert not node.changes, f"{path} is not at rest: sync it first"
        dice = rng or self.rng
        position = dice.randrange(len(node.content))
        while position in spared:
            position = dice.randrange(len(node.content))
        flipped = node.content[position] ^ (1 << dice.randrange(8))
        node.content[position] = node.durable[position] = flipped
        return position

    def copy(self) -> "SimulatedDisk":
        """Return a disk in the same state, as if copied while the machine holds still."""
        twin = SimulatedDisk(speed=self.speed)
        twin.rng.setstate(self.rng.getstate())
        twin.now_ms = self.now_ms
        twin.capacity_bytes = self.capacity_bytes
        twin.read_only = self.read_only
        twin.sync_lies = self.sync_lies
        twin.has_forgotten = self.has_forgotten
        twin.boots = self.boots
        copies: dict[int, Node] = {}
        twin._root = copy_directory(self._root, copies)
        for change in self._names:
            source, target = (
                copy_directory(directory, copies) for directory in (change.directory, change.new_directory)
            )
            twin._names.append(
                NameChange(source, change.old, target, change.new, copy_node(change.node, copies))
            )
        self._digest()
        twin._trace = self._trace.copy()
        return twin

    @property
    def trace(self) -> str:
        """A digest of every change so far, in order: equal for equal runs."""
        self._digest()
        return self._trace.hexdigest()

    def _digest(self) -> None:
        self._trace.update("".join(self._noted).encode())
        self._noted.clear()

    def used_bytes(self) -> int:
        """Return how many bytes all files have, as seen by a process."""
        return sum(len(node.content) for node in walk(self._root) if isinstance(node, FileNode))

    # For handles, and for those who look inside.

    def find_node(self, path: str) -> Node | None:
        """Return what is at `path`, as a process sees it."""
        node = self._found.get(path)
        if node is None:
            found: Node | None = self._root
            for part in path.split("/"):
                if part:
                    found = found.entries.get(part) if isinstance(found, DirectoryNode) else None
            if found is None:
                return None
            self._found[path] = node = found
        return node

    def find_durable(self, path: str) -> FileNode | None:
        """Return the file whose durable name is `path`: what a power cut would leave there, at the least."""
        if path in self._found_durable:
            return self._found_durable[path]
        found: Node | None = self._root
        for part in path.split("/"):
            if part:
                found = found.durable.get(part) if isinstance(found, DirectoryNode) else None
        file = self._found_durable[path] = found if isinstance(found, FileNode) else None
        return file

    def count_read(self, path: str, length: int) -> None:
        """Count a read, and fail it if it is its turn."""
        counters = self.counters
        counters.reads += 1
        counters.read_bytes += length
        counters.busy_us += self.speed.read_us
        if self._faults:
            self._maybe_fail("read", path)

    def begin_change(self, operation: str, path: str, position: int = 0, data: bytes = b"") -> None:
        """Begin a change, which may fail before anything happens. `end_change` follows if it succeeds."""
        if self._changes_left == 0:
            raise PowerCut(path)
        is_sync = operation in _SYNCS
        if self.read_only and not is_sync:
            raise DiskError(path, operation, Reason.READ_ONLY)
        if self._faults:
            self._maybe_fail(operation, path)
        self._noted.append(f"{operation} {path} {position} {len(data)} {crc32(data)}\n")
        if len(self._noted) >= _NOTED_MAX:
            self._digest()
        self._count(operation, len(data))
        if self._changes_left is not None:
            self._changes_left -= 1
            if self._changes_left == 0 and is_sync:
                # Power goes before the sync is through: nothing is promised of what it was to write.
                raise PowerCut(path)

    def end_change(self, path: str) -> None:
        """End a change. Power may have gone in the middle of it."""
        if self._changes_left == 0:
            raise PowerCut(path)

    def room_for(self, growth: int) -> int:
        """Return how many bytes are left after growing by this many; negative when they do not fit."""
        if self.capacity_bytes is None or growth <= 0:
            return 0
        return self.capacity_bytes - self.used_bytes() - growth

    def _count(self, operation: str, length: int) -> None:
        counters, speed = self.counters, self.speed
        match operation:
            case "write" | "truncate":
                counters.writes += 1
                counters.written_bytes += length
                counters.busy_us += speed.write_us
            case "sync" | "sync_all":
                counters.syncs += 1
                counters.busy_us += speed.sync_us
            case "sync_directory":
                counters.directory_syncs += 1
                counters.busy_us += speed.sync_us
            case _:
                counters.name_changes += 1
                counters.busy_us += speed.name_change_us

    def _maybe_fail(self, operation: str, path: str) -> None:
        for fault in self._faults:
            if fault.strikes(operation, path):
                raise DiskError(path, operation, fault.reason)

    def _make(self, path: str, node: Node) -> None:
        directory, name = self._parent(path, "create")
        self.begin_change("create", path)
        self._change_names(NameChange(directory, None, directory, name, node))
        self.end_change(path)

    def _unmake(self, path: str) -> None:
        directory, name = self._parent(path, "remove")
        self.begin_change("remove", path)
        self._change_names(NameChange(directory, name, directory, None, directory.entries[name]))
        self.end_change(path)

    def _change_names(self, change: NameChange) -> None:
        change.apply_to_entries()
        self._names.append(change)
        self._found.clear()

    def _parent(self, path: str, operation: str) -> tuple[DirectoryNode, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent, operation, path), name

    def _directory(self, path: str, operation: str, of: str = "") -> DirectoryNode:
        node = self.find_node(path) if path else self._root
        if not isinstance(node, DirectoryNode):
            raise DiskError(of or path, operation, Reason.NOT_FOUND)
        return node

    def _start_again(self) -> None:
        self.boots += 1
        self.locks.clear()
        self._changes_left = None
        self._found.clear()
        self._found_durable.clear()


def _entry(name: str, node: Node) -> Entry:
    if isinstance(node, DirectoryNode):
        return Entry(name, True, 0, node.modified_ms)
    return Entry(name, False, len(node.content), node.modified_ms)
