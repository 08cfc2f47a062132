"""Logs on the real disk, in a directory that goes away afterwards, and batches for them."""

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.model.ids import LeaderEpoch, NodeId, TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.runtime.disk import RealDisk
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.log_dirs.meta_properties import MetaProperties
from ottla.storage.log_dirs.opening import format_directory, open_directory
from ottla.storage.volume import Volume

NOW_MS: Final = 1_700_000_000_000
TOPIC_ID: Final = Uuid(bytes(range(16)))


class Scratch:
    """A log directory below the working directory, so that it lies on the disk that is to be measured."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="bench-log-", dir=target_directory()))
        self.disk = RealDisk()
        meta = MetaProperties(cluster_id="bench", node_id=NodeId(1), directory_id=Uuid(bytes(15) + b"\x99"))
        self.logs_path = self.path / "logs"
        format_directory(self.disk, str(self.logs_path), meta)
        self.directory = open_directory(Volume(self.disk, str(self.logs_path)))

    def create_log(self, topic: str, partition: int, config: LogConfig | None = None) -> Log:
        """Make an empty log."""
        return self.directory.create_log(
            TopicPartition(topic, partition), TOPIC_ID, config or LogConfig(), NOW_MS
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.directory.release()
        for log in self.directory.logs.values():
            for segment in log.segments:
                segment.file.close()
        shutil.rmtree(self.path)


def target_directory() -> Path:
    """Return where measurements write: on the disk of the working directory, not in memory."""
    target = Path("target")
    target.mkdir(exist_ok=True)
    return target.absolute()


def make_batch(size_bytes: int, *, producer_id: int = -1, base_sequence: int = -1) -> bytearray:
    """Return a batch of one record, as a producer sends it, of about `size_bytes`."""
    epoch = 0 if producer_id >= 0 else -1
    value = bytes(size_bytes - 90)
    batch = build_batch(
        [Record(0, NOW_MS, b"key", value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=base_sequence,
    )
    return bytearray(batch)


def append(log: Log, batch: bytearray) -> None:
    """Append one batch as a client's."""
    log.append_as_leader(memoryview(batch), leader_epoch=LeaderEpoch(0), now_ms=NOW_MS)
