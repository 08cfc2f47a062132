"""Files and directories that remember what a power cut may take from them.

A file is its content as a process sees it, plus its durable content and the changes since. Only `sync` turns
changes into durable content. A power cut rolls dice for every page (4 KiB) that changed:

- a page survives as it was at *some* moment between the last sync and now, because the kernel writes pages
  back when it likes, in any order;
- the size survives as it was at some moment too. Bytes within it that were never written back are zeros;
- one page of the disk may be torn: some of its sectors (512 bytes) are newer than others, and a sector that
  held nothing durable may hold garbage.

Two limits keep this to what real disks do. A sector that holds durable bytes is old or new, never garbage:
sector writes are atomic. And a cut that survives takes the bytes behind it along, so old content does not
shine through a hole that a later write left.

A directory is its names, plus the durable ones. Name changes of all directories are kept in one list, in
order (`NameChange`). They survive either up to some moment, as on a journaling file system, or in any
combination that can be carried out, which is all that POSIX promises.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final, NamedTuple, TypeAlias

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512


class Written(NamedTuple):
    """Bytes written, and not yet durable."""

    position: int
    data: bytes


class Cut(NamedTuple):
    """A truncation, not yet durable. It may also have made the file longer."""

    size: int


Change: TypeAlias = Written | Cut


class FileNode:
    """A file, whatever its names are."""

    __slots__ = ("changes", "content", "durable", "has_forgotten", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        # Whether a sync has failed, so that what can be read may not be what is durable.
        self.has_forgotten = False
        self.content = bytearray()
        self.durable = bytearray()
        self.changes: list[Change] = []
        self.modified_ms = modified_ms

    def write(self, position: int, data: bytes) -> None:
        """Write, for now only to memory."""
        self._change(Written(position, data))

    def truncate(self, size: int) -> None:
        """Set the size, for now only in memory."""
        self._change(Cut(size))

    def sync(self) -> None:
        """Make all changes durable."""
        for change in self.changes:
            _apply(self.durable, change)
        self.changes.clear()

    def forget_changes(self) -> None:
        """Take all changes for durable without writing them: what the kernel does when a sync fails."""
        self.has_forgotten = True
        self.changes.clear()

    def cut_power(self, dice: "Dice", tear: bool) -> None:
        """Make the file what a power cut leaves of it. With `tear`, one of its pages may be torn."""
        if self.changes:
            self.durable = _surviving_content(self.durable, self.changes, dice, tear)
            self.changes = []
        self.content = bytearray(self.durable)
        self.has_forgotten = False

    def copy(self) -> "FileNode":
        node = FileNode(self.modified_ms)
        node.content = bytearray(self.content)
        node.durable = bytearray(self.durable)
        node.changes = list(self.changes)
        node.has_forgotten = self.has_forgotten
        return node

    def _change(self, change: Change) -> None:
        _apply(self.content, change)
        self.changes.append(change)


class DirectoryNode:
    """A directory, whatever its name is."""

    __slots__ = ("durable", "entries", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.modified_ms = modified_ms


Node: TypeAlias = FileNode | DirectoryNode


class NameChange(NamedTuple):
    """One change of names: a name made (`old` is None), removed (`new` is None), or moved."""

    directory: DirectoryNode
    old: str | None
    new_directory: DirectoryNode
    new: str | None
    node: Node

    def involves(self, directory: DirectoryNode) -> bool:
        return self.directory is directory or self.new_directory is directory

    def apply_to_entries(self) -> None:
        self._apply(self.directory.entries, self.new_directory.entries)

    def apply_to_durable(self) -> None:
        self._apply(self.directory.durable, self.new_directory.durable)

    def _apply(self, source: dict[str, Node], target: dict[str, Node]) -> None:
        if self.old is not None:
            source.pop(self.old, None)
        if self.new is not None:
            target[self.new] = self.node


class Dice:
    """How one power cut falls: what share of the changes survives, and in what order.

    The extremes (nothing, everything) are drawn often, because most bugs of an order of syncs show there.
    """

    __slots__ = ("_rng", "in_order", "share")

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        self.in_order = rng.random() < 0.5

    def moment(self, first: int, last: int) -> int:
        """Choose up to which change something survives: one of `first` to `last`."""
        roll = self._rng.random()
        if roll < self.share:
            return last
        if roll < self.share + (1.0 - self.share) * 0.7:
            return first
        return self._rng.randint(first, last)

    def survives(self) -> bool:
        return self._rng.random() < self.share

    def choice(self, among: Sequence[int]) -> int:
        return self._rng.choice(among)

    def coin(self) -> bool:
        return self._rng.random() < 0.5

    def garbage(self, length: int) -> bytes:
        return self._rng.randbytes(length)


def cut_power_of_names(changes: Sequence[NameChange], dice: Dice) -> None:
    """Make durable those of the pending changes of names that survive."""
    if dice.in_order:
        for change in changes[: dice.moment(0, len(changes))]:
            change.apply_to_durable()
        return
    # A change that builds on a lost one is lost too. Identity is enough to tell nodes apart, and no order
    # depends on it.
    lost: set[tuple[int, str]] = set()
    lost_nodes: set[int] = set()
    for change in changes:
        names = {(id(change.directory), change.old), (id(change.new_directory), change.new)}
        touched = {(directory, name) for directory, name in names if name is not None}
        if not touched & lost and id(change.node) not in lost_nodes and dice.survives():
            change.apply_to_durable()
        else:
            lost |= touched
            lost_nodes.add(id(change.node))


def _apply(content: bytearray, change: Change) -> None:
    """Change bytes as a file is changed. A gap is filled with zeros."""
    if isinstance(change, Written):
        if change.position > len(content):
            content.extend(bytes(change.position - len(content)))
        content[change.position : change.position + len(change.data)] = change.data
    elif change.size < len(content):
        del content[change.size :]
    else:
        content.extend(bytes(change.size - len(content)))


def _surviving_content(durable: bytearray, changes: Sequence[Change], dice: Dice, tear: bool) -> bytearray:
    sizes = [len(durable)]
    for change in changes:
        sizes.append(_size_after(sizes[-1], change))
    size_moment = dice.moment(0, len(changes))
    size = sizes[size_moment]
    # With an ordering file system the bytes go to disk before the size that covers them does.
    oldest = size_moment if dice.in_order else _last_cut(changes[:size_moment])
    pages = [page for page in _changed_pages(len(durable), changes) if page * PAGE_BYTES < size]
    torn = dice.choice(pages) if tear and pages else -1
    content = durable[:size]
    content.extend(bytes(size - len(content)))
    for page in pages:
        start = page * PAGE_BYTES
        end = min(start + PAGE_BYTES, size)
        if page == torn:
            old = _page_at(durable, changes[:oldest], start)
            new = _page_at(durable, changes, start)
            survivor = _tear(old, new, len(durable) - start, dice)
        else:
            survivor = _page_at(durable, changes[: dice.moment(oldest, len(changes))], start)
        content[start:end] = survivor[: end - start]
    return content


def _size_after(size: int, change: Change) -> int:
    return max(size, change.position + len(change.data)) if isinstance(change, Written) else change.size


def _last_cut(changes: Sequence[Change]) -> int:
    """Return the number of changes up to and with the last truncation, 0 without one."""
    for index in range(len(changes) - 1, -1, -1):
        if isinstance(changes[index], Cut):
            return index + 1
    return 0


def _changed_pages(durable_size: int, changes: Iterable[Change]) -> list[int]:
    pages: set[int] = set()
    for change in changes:
        if isinstance(change, Written):
            last = max(change.position, change.position + len(change.data) - 1)
            pages.update(range(change.position // PAGE_BYTES, last // PAGE_BYTES + 1))
        else:
            pages.update(range(change.size // PAGE_BYTES, durable_size // PAGE_BYTES + 1))
    return sorted(pages)


def _page_at(durable: bytearray, changes: Iterable[Change], start: int) -> bytearray:
    """Return the page at `start` as it was after `changes`, filled up with zeros."""
    page = bytearray(durable[start : start + PAGE_BYTES])
    page.extend(bytes(PAGE_BYTES - len(page)))
    for change in changes:
        if isinstance(change, Cut):
            kept = max(0, change.size - start)
            if kept < PAGE_BYTES:
                page[kept:] = bytes(PAGE_BYTES - kept)
            continue
        first = max(change.position, start)
        last = min(change.position + len(change.data), start + PAGE_BYTES)
        if first < last:
            page[first - start : last - start] = change.data[first - change.position : last - change.position]
    return page


def _tear(old: bytearray, new: bytearray, durable_bytes: int, dice: Dice) -> bytearray:
    """Take each sector from one of two moments. One that held nothing durable may become garbage."""
    page = bytearray(old)
    changed = [
        sector
        for sector in range(0, PAGE_BYTES, SECTOR_BYTES)
        if old[sector : sector + SECTOR_BYTES] != new[sector : sector + SECTOR_BYTES]
    ]
    for sector in changed:
        if dice.coin():
            page[sector : sector + SECTOR_BYTES] = new[sector : sector + SECTOR_BYTES]
    spoilt = [sector for sector in changed if sector >= durable_bytes]
    if spoilt and dice.coin():
        sector = dice.choice(spoilt)
        page[sector : sector + SECTOR_BYTES] = dice.garbage(SECTOR_BYTES)
    return page
