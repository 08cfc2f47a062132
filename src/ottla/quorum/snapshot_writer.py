"""Writes a snapshot of the metadata when one is due, and deletes what it makes superfluous.

One is due after a number of bytes of records or after some time. It is written in steps (`snapshots`).
"""

from collections.abc import Iterator
from typing import Final

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.published import PublishedMetadata
from ottla.quorum.load import LoadedLog
from ottla.quorum.raft_driver import RaftDriver
from ottla.quorum.snapshot_file import SnapshotId
from ottla.quorum.snapshots import Snapshots, id_of, surplus
from ottla.storage import retention

_DONE: Final = object()


class SnapshotWriter:
    """Keeps the snapshots of one metadata log."""

    def __init__(
        self,
        snapshots: Snapshots,
        driver: RaftDriver,
        published: PublishedMetadata,
        loaded: LoadedLog,
        config: NodeConfig,
        now_ms: int,
    ) -> None:
        self._snapshots = snapshots
        self._driver = driver
        self._published = published
        self._config = config
        self._written_end = loaded.snapshot_id.end_offset
        self._written_ms = now_ms
        self._written_bytes = -loaded.tail_bytes
        self._writing: Iterator[None] | None = None

    @property
    def is_writing(self) -> bool:
        """Say whether a snapshot was begun and is not complete."""
        return self._writing is not None

    def tick(self, now_ms: int) -> None:
        """Do one step of what is due."""
        if self._writing is not None:
            self._write_on(self._writing, now_ms)
        elif self._is_due(now_ms):
            self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Begin a snapshot of what is published."""
        image = self._published.image
        self._written_end = id_of(image).end_offset
        quorum = self._driver.replica.history.before(self._written_end)
        self._writing = self._snapshots.write(image, quorum, now_ms)
        self._written_ms = now_ms
        self._written_bytes = self._driver.committed_bytes

    def restart_from(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """Begin again after a snapshot that came from the leader. One of an older image is useless."""
        self._writing = None
        self._written_end = snapshot_id.end_offset
        self._written_ms = now_ms
        self._written_bytes = self._driver.committed_bytes

    def _is_due(self, now_ms: int) -> bool:
        if self._published.image.offset < self._written_end:
            return False
        new_bytes = self._driver.committed_bytes - self._written_bytes
        if new_bytes >= self._config.metadata_log_max_record_bytes_between_snapshots:
            return True
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        return 0 < interval_ms <= now_ms - self._written_ms

    def _write_on(self, steps: Iterator[None], now_ms: int) -> None:
        if next(steps, _DONE) is _DONE:
            self._writing = None
            self._delete_surplus(now_ms)
            self._driver.snapshots_changed()

    def _delete_surplus(self, now_ms: int) -> None:
        """Delete the oldest snapshots that need not be kept, and what the log has from before the others."""
        log = self._driver.log
        config = self._config
        stored = self._snapshots.list()
        gone = surplus(
            stored,
            log.size_bytes,
            config.metadata_max_retention_bytes,
            config.metadata_max_retention_ms,
            now_ms,
        )
        if not gone:
            return
        log.increment_log_start_offset(stored[len(gone)].id.end_offset)
        for snapshot_id in gone:
            self._snapshots.delete(snapshot_id)
        # The oldest snapshot says where the log starts. If a power cut brought an older one back, and some of
        # the segments, the log would seem to end at the first that is missing.
        disk = log.volume.disk
        deletions = retention.delete_old_segments(log, now_ms, lambda: disk.sync_directory(log.path))
        for deletion in deletions:
            deletion.run(disk)
