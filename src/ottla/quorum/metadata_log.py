"""Opening the log of the metadata, which must not lose a record without anybody noticing."""

from typing import Final, NamedTuple

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.features import METADATA_VERSION, default_levels
from ottla.model.ids import NO_OFFSET, Offset
from ottla.model.uuid import METADATA_TOPIC_ID
from ottla.quorum.batches import BATCH_BYTES_MAX, encode_batch
from ottla.quorum.snapshots import Snapshots
from ottla.storage.config import LogConfig
from ottla.storage.damages.stopped_files import StoppedLog
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.log_dirs import partition_metadata
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.volume import Volume
from ottla.wire.metadata_records.no_op import NoOpRecord


class SyncedMetadata(NamedTuple):
    """What is known of a metadata log before it is looked at. See `LoadRequest`."""

    was_clean: bool = False
    synced_offset: Offset = NO_OFFSET
    stopped: StoppedLog | None = None
    # Damage is not repaired unless somebody has asked for it.
    refuses_damage: bool = True


NOTHING_KNOWN: Final = SyncedMetadata()


def open_metadata_log(
    volume: Volume,
    path: str,
    config: NodeConfig,
    snapshots: Snapshots,
    now_ms: int,
    known: SyncedMetadata = NOTHING_KNOWN,
) -> Log:
    """Load the log, every batch of which is checked.

    Raises `DamagedLog` for one that is damaged. A log without some of its records would make the node set the
    data of topics aside that it does not know any more, and clients would create them again. What was never
    synced is cut, and kept aside.
    """
    id_path = f"{path}/{partition_metadata.FILE}"
    if not volume.disk.exists(id_path):
        content = partition_metadata.encode_partition_metadata(METADATA_TOPIC_ID)
        volume.disk.write_file_atomically(id_path, content)
    stored = snapshots.list()
    log_config = LogConfig(
        segment_bytes=config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        max_message_bytes=BATCH_BYTES_MAX,
        is_deleted=False,
    )
    request = LoadRequest(
        path=path,
        topic_partition=METADATA_PARTITION,
        config=log_config,
        log_start_offset=stored[0].id.end_offset if stored else Offset(0),
        now_ms=now_ms,
        synced_offset=known.synced_offset,
        stopped=known.stopped,
        all_was_synced=known.was_clean,
        refuses_damage=known.refuses_damage,
        make_filler=_no_op_batch,
    )
    log = load_log(volume, request)
    if stored and log.log_end_offset < stored[-1].id.end_offset:
        # What the log has lost is in the snapshot. As in Kafka, it goes on from there.
        for deletion in log.truncate_fully_and_start_at(stored[-1].id.end_offset, now_ms):
            deletion.run(volume.disk)
    return log


def _no_op_batch(first_offset: int, next_offset: int, epoch: int) -> bytearray:
    """Return a batch of records that say nothing. Apache Kafka takes no batch of metadata without records."""
    records = [NoOpRecord()] * (next_offset - first_offset)
    version = default_levels()[METADATA_VERSION]
    return encode_batch(records, version, Offset(first_offset), max(epoch, 0), 0)
