"""Disks for the nodes of a campaign: each is a real file system of its own, and its power can be cut.

    with NodeDisk(mount_point, image, "commit=300") as disk:
        disk.cut_power()              what was not synced is lost; nothing can be written any more
        disk.restore()                the file system replays its journal, as after a real power cut

A disk is an ext4 file system in a file, through a loop device. A power cut is ext4's own shutdown, without a
flush of its journal (what `godown` of xfstests does). From that moment on the kernel writes nothing of it:
pages and names that were not written back by then are gone. It takes root: `why_no_power_cuts` says what is
missing. Where there are no loop devices, `SmallDisk` is a disk that can only be full.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final, Self

DISK_MIB: Final = 400
MOUNT_OPTIONS: Final = (
    # Names and sizes reach the disk when somebody syncs, hardly ever by themselves.
    "commit=300",
    "commit=5",
    # Sizes may reach the disk before the bytes do.
    "commit=300,data=writeback",
    "commit=300,nodelalloc",
)
"""Ways to lose different things in a power cut."""

_SHUTDOWN: Final = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""
_NO_LOG_FLUSH: Final = struct.pack("I", 2)
_BUSY_S_MAX: Final = 20.0


class DisksFailed(Exception):
    """A command for disks failed."""


class NodeDisk:
    """A file system in a file. Entering mounts it, leaving unmounts it."""

    def __init__(self, mount_point: Path, image: Path, options: str) -> None:
        self._mount_point = mount_point
        self._image = image
        self._options = f"loop,{options}"
        self._sizes: dict[Path, int] = {}

    def __enter__(self) -> Self:
        self._mount_point.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as file:
            file.truncate(DISK_MIB << 20)
        # Without a reserve for root, to which a full disk would not be full.
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self._mount()
        # Brokers take every directory for a partition.
        (self._mount_point / "lost+found").rmdir()
        self.sync()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._unmount()
        self._image.unlink()

    def cut_power(self) -> None:
        """Lose what was not written back. No file that is open can be used any more."""
        self._sizes = self._log_sizes()
        directory = os.open(self._mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _SHUTDOWN, _NO_LOG_FLUSH)
        finally:
            os.close(directory)

    def restore(self) -> int:
        """Mount what is left. No process may use it. Returns how many bytes of logs were lost."""
        self._unmount()
        self._mount()
        sizes = self._log_sizes()
        return sum(max(size - sizes.get(path, 0), 0) for path, size in self._sizes.items())

    def sync(self) -> None:
        """Write everything back."""
        _run("sync", "-f", str(self._mount_point))

    def _mount(self) -> None:
        _run("mount", "-t", "ext4", "-o", self._options, str(self._image), str(self._mount_point))

    def _unmount(self) -> None:
        # Two mounts of one file would destroy it, so it must not be unmounted lazily. The kernel may need a
        # moment to close the files of a process that was killed.
        deadline = time.monotonic() + _BUSY_S_MAX
        while True:
            try:
                _run("umount", str(self._mount_point))
            except DisksFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def _log_sizes(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in self._mount_point.rglob("*/*.log")}


class SmallDisk:
    """A disk in memory, small enough to be filled."""

    def __init__(self, mount_point: Path, mib: int = DISK_MIB) -> None:
        self._mount_point = mount_point
        self._mib = mib

    def __enter__(self) -> Self:
        self._mount_point.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={self._mib}m", "none", str(self._mount_point))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _run("umount", "-l", str(self._mount_point))


def why_no_power_cuts() -> str | None:
    """Return why the power of disks cannot be cut here, or None if it can."""
    if os.geteuid() != 0:
        return "only root may mount file systems"
    for program in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(program) is None:
            return f"the command {program} is missing"
    with tempfile.TemporaryDirectory(dir=image_directory()) as directory:
        root = Path(directory)
        try:
            with NodeDisk(root / "disk", root / "image", "commit=300") as disk:
                disk.cut_power()
                disk.restore()
        except (DisksFailed, OSError) as error:
            return str(error)
    return None


def image_directory() -> Path:
    """Return where images are best kept: in memory, since a sync of a real disk takes time."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DisksFailed(f"{' '.join(command)}: {done.stderr.strip()}")
