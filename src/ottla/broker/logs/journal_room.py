"""Is there room for the journal? It is the first to stop when a disk fills up.

A write that fails takes its directory offline, whatever it was for. So the journal leaves a reserve:
what it would have written is lost, and the node goes on.
"""

from typing import Final

from ottla.storage.volume import Volume
from ottla.world.disk import DiskError

TOPIC: Final = "__ottla_journal"
RESERVE_BYTES: Final = 256 << 20
_SHARE: Final = 10
"""Of a small disk, this part is the reserve."""
_LEAST_BYTES: Final = 2 << 20
"""More than one batch and its indexes take."""


def has_room(volume: Volume) -> bool:
    """Say whether a directory works, and has more space than the journal leaves to others."""
    if volume.error is not None or volume.is_short:
        return False
    try:
        usage = volume.disk.usage(volume.path)
    except DiskError:
        return False
    return usage.usable_bytes > min(RESERVE_BYTES, max(usage.total_bytes // _SHARE, _LEAST_BYTES))
