"""Which log directories a node has had, as its metadata tells.

A start has to know that before it opens anything: a directory that is empty may be new, or its disk may not
be mounted.
"""

from ottla.metadata.directory_ids import is_reserved
from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage, Position
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import NodeId, Offset
from ottla.model.uuid import Uuid
from ottla.quorum.batches import decode_batch
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.snapshots import Snapshots
from ottla.records.batch import iter_batches
from ottla.records.errors import RecordsError
from ottla.storage.names import FileKind, FileState, find_segment_file
from ottla.world.disk import Disk


def read_known_directories(disk: Disk, directory: str, node_id: NodeId) -> frozenset[Uuid]:
    """Return the ids of the directories that a node has registered, or that have replicas of it.

    Raises `MetadataError` if the metadata in the log directory `directory` cannot be read.
    """
    image = read_image(disk, f"{directory}/{METADATA_DIRECTORY}")
    broker = image.brokers.get(node_id)
    known = set(() if broker is None else broker.log_dirs)
    for topic in image.topics:
        for partition in topic.partitions.values():
            places = zip(partition.replicas, partition.directories, strict=False)
            known.update(place for replica, place in places if replica == node_id)
    return frozenset(one for one in known if not is_reserved(one))


def read_image(disk: Disk, path: str, end_offset: int | None = None) -> MetadataImage:
    """Return what the metadata in `path` comes to, without opening or changing anything.

    With an `end_offset`, only the batches that end before it count.
    """
    loader = MetadataLoader(EMPTY_IMAGE)
    if not disk.exists(path):
        return EMPTY_IMAGE
    first_offset = 0
    newest = Snapshots(disk, path).read_newest()
    if newest is not None and newest[0].end_offset > 0:
        snapshot_id, snapshot = newest
        first_offset = snapshot_id.end_offset
        last = Position(Offset(first_offset - 1), snapshot_id.epoch, snapshot.last_contained_timestamp_ms)
        loader.feed(snapshot.records, last)
    for name in sorted(entry.name for entry in disk.list(path)):
        found = find_segment_file(name)
        if found is not None and found.kind is FileKind.LOG and found.state is FileState.CURRENT:
            _feed(disk.read_file(f"{path}/{name}"), f"{path}/{name}", first_offset, end_offset, loader)
    return loader.take()[0]


def _feed(
    content: bytes, path: str, first_offset: int, end_offset: int | None, loader: MetadataLoader
) -> None:
    try:
        for raw in iter_batches(memoryview(content)):
            if raw.last_offset < first_offset:
                continue
            if end_offset is not None and raw.last_offset >= end_offset:
                return
            batch = decode_batch(raw)
            if batch.is_control:
                loader.skip(batch.position)
            else:
                loader.feed(batch.records, batch.position)
    except UnknownRecord:
        raise
    except (RecordsError, MetadataError) as error:
        raise MetadataError(f"{path} is damaged: {error}") from error
