"""What must be on a disk whatever a power cut takes: all that a node says it has synced.

A power cut takes some of what was not synced, and only seldom the part that somebody needs. So nobody waits
for one here: the disk knows what would be left in the worst case.
"""

from tests.simulation.cluster.rules.wrong import must
from tests.simulation.storage.batches import HEADER

from ottla.quorum.snapshot_file import find_snapshot_id
from ottla.storage.log import Log
from ottla.storage.log_dirs import clean_shutdown
from ottla.storage.log_dirs.checkpoints import (
    LEADER_EPOCH_FILE,
    RECOVERY_POINT_FILE,
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
)
from ottla.storage.segment import Segment
from ottla.testing.power_cut import Cut, FileNode, Written
from ottla.testing.simulated_disk import SimulatedDisk


class SyncedEnds:
    """Where batches below a recovery point end: looked for from where the last one was found."""

    def __init__(self) -> None:
        # By file: how often its log was cut, an offset, and where the batches below it end.
        self._known: dict[FileNode, tuple[int, int, int]] = {}

    def find(self, log: Log, file: FileNode) -> int:
        """Return how many bytes of a file the recovery point of its log covers."""
        cuts, offset, position = self._known.get(file, (log.truncations, -1, 0))
        if cuts != log.truncations or offset > log.recovery_point:
            position = 0
        content = file.content
        while position < len(content):
            base_offset, length, *_ = HEADER.unpack_from(content, position)
            if base_offset >= log.recovery_point:
                break
            position += 12 + length
        self._known[file] = (log.truncations, log.recovery_point, position)
        return position


def check_durable(name: str, log: Log, disk: SimulatedDisk, ends: SyncedEnds, *, is_quiet: bool) -> None:
    """Compare what a log says it has synced with what would be left of it.

    If it is quiet, no sync is under way. Only then the indexes are safe, too.
    """
    if log.volume.error is not None:
        return
    if log.segments[0].base_offset == 0:
        # Without it the log would seem to start at its second segment.
        _check_name(name, log.segments[0].file.path, disk)
    for segment in log.segments:
        _check_cuts(name, segment, disk)
        if segment.base_offset < log.recovery_point:
            _check_segment(name, log, segment, disk, ends)
            if is_quiet and segment is not log.segments[-1]:
                _check_indexes(name, log, segment, disk)
    _check_epochs(name, log, disk)


def check_recovery_points(name: str, logs: list[Log], disk: SimulatedDisk, directory: str) -> None:
    """What is written down as synced is, even if a log was cut since."""
    node = disk.find_durable(f"{directory}/{RECOVERY_POINT_FILE}")
    noted = {} if node is None else decode_offset_checkpoint(bytes(node.durable))
    for log in logs:
        found = noted.get(log.topic_partition, 0)
        must(
            log.volume.error is not None or found <= log.recovery_point,
            f"durable: {name} has synced {log.topic_partition} up to {log.recovery_point}, "
            f"but {found} is written down",
        )


def check_stop_mark(name: str, disk: SimulatedDisk, directory: str) -> None:
    """A node that serves may end at any time, and that was no clean stop then."""
    is_marked = disk.find_durable(f"{directory}/{clean_shutdown.FILE}") is not None
    must(not is_marked, f"durable: {name} serves, but {directory} has the mark of a clean stop")


def check_snapshots(name: str, disk: SimulatedDisk, directory: str) -> None:
    """A snapshot of the metadata takes the place of the log before it, so it is all on disk."""
    for entry in disk.list(directory):
        path = f"{directory}/{entry.name}"
        if find_snapshot_id(entry.name) is not None:
            node = disk.find_node(path)
            assert isinstance(node, FileNode)
            must(
                disk.find_durable(path) is node and (node.has_forgotten or node.durable == node.content),
                f"durable: {name} has the snapshot {path}, which is not synced",
            )


def check_cut_is_synced(name: str, log: Log, disk: SimulatedDisk) -> None:
    """What a log was cut off does not come back: that is synced before anything else happens."""
    node = disk.find_node(log.segments[-1].file.path)
    must(
        not isinstance(node, FileNode) or not any(isinstance(change, Cut) for change in node.changes),
        f"durable: {name}: {log.segments[-1].file.path} was cut, and that is not synced",
    )


def _check_cuts(name: str, segment: Segment, disk: SimulatedDisk) -> None:
    """What was cut off cannot come back behind what was written since."""
    node = disk.find_node(segment.file.path)
    if isinstance(node, FileNode) and len(node.changes) > 1:
        first_cut = next((at for at, change in enumerate(node.changes) if isinstance(change, Cut)), None)
        must(
            first_cut is None or not any(isinstance(one, Written) for one in node.changes[first_cut:]),
            f"durable: {name}: {segment.file.path} was cut, and that was not synced before it was written to",
        )


def _check_segment(name: str, log: Log, segment: Segment, disk: SimulatedDisk, ends: SyncedEnds) -> None:
    node = _check_name(name, segment.file.path, disk)
    end = ends.find(log, node)
    must(
        node.has_forgotten or node.durable[:end] == node.content[:end],
        f"durable: {name}: {segment.file.path} is said to be synced up to offset {log.recovery_point}",
    )


def _check_indexes(name: str, log: Log, segment: Segment, disk: SimulatedDisk) -> None:
    """A start does not look at segments below the recovery point: it believes the indexes that it finds."""
    if log.end_of(segment) <= log.recovery_point:
        for path in segment.derived_paths():
            index = disk.find_durable(path)
            if index is not None and index is disk.find_node(path) and path not in log.unsynced_paths:
                is_synced = index.has_forgotten or index.durable == index.content
                must(is_synced, f"durable: {name}: {path} is not synced")


def _check_name(name: str, path: str, disk: SimulatedDisk) -> FileNode:
    node = disk.find_node(path)
    assert isinstance(node, FileNode)
    # What compaction has staged gets its name again when a start finds it.
    is_safe = any(disk.find_durable(one) is node for one in (path, f"{path}.swap"))
    must(is_safe, f"durable: {name}: the name {path} is not synced")
    return node


def _check_epochs(name: str, log: Log, disk: SimulatedDisk) -> None:
    """A start finds the epochs of everything that it does not look at: what is below the recovery point."""
    if log.has_unsynced_epochs:
        return
    node = disk.find_durable(f"{log.path}/{LEADER_EPOCH_FILE}")
    noted = {} if node is None else dict(decode_epoch_checkpoint(bytes(node.durable)))
    # Where the head of a log was deleted, an epoch may be said to have begun earlier.
    lost = [one for one in log.leader_epochs.entries if noted.get(one.epoch, 1 << 62) > one.start_offset]
    must(
        all(entry.start_offset >= log.recovery_point for entry in lost),
        f"durable: {name}: epochs {lost} are not synced, but {log.recovery_point} is",
    )
