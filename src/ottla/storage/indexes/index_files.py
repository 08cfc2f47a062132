"""The files that indexes are kept in: read, extended and cut by callers that know how many bytes count.

They are opened for one call and closed again: none is needed often enough to keep a descriptor for it.
"""

from ottla.world.disk import Buffer, Disk


def read_index(disk: Disk, path: str, size_bytes: int) -> bytes:
    """Return the first `size_bytes` of an index file. Without any, the file need not be there."""
    return read_index_part(disk, path, 0, size_bytes)


def read_index_part(disk: Disk, path: str, position: int, size_bytes: int) -> bytes:
    """Return some entries of an index file."""
    if size_bytes == 0 or position < 0:
        return b""
    file = disk.open(path)
    entries = file.read(position, size_bytes)
    file.close()
    return entries


def extend_index(disk: Disk, path: str, position: int, entries: Buffer) -> None:
    """Add entries to an index file, which is there afterwards even if there are none."""
    file = disk.open(path, create=True)
    if entries:
        file.write(position, (entries,))
    file.close()


def cut_index(disk: Disk, path: str, size_bytes: int) -> None:
    """Cut an index file, which is there afterwards, to `size_bytes`."""
    file = disk.open(path, create=True)
    if file.size() > size_bytes:
        file.truncate(size_bytes)
    file.close()


def replace_index(disk: Disk, path: str, entries: Buffer) -> None:
    """Write an index file again."""
    file = disk.open(path, create=True)
    file.truncate(0)
    if entries:
        file.write(0, (entries,))
    file.close()


def sync_index(disk: Disk, path: str) -> None:
    """Make an index file survive a power cut, where no flush will look at it."""
    file = disk.open(path)
    try:
        file.sync()
    finally:
        file.close()
