"""How far each log of a directory was synced (`.ottla-synced-offsets`), up to the last sync.

The recovery points are written down once a minute. After `kill -9` most of what was acknowledged lies above
them, and what lies above could as well be a write that a power cut has torn. So after each sync the offset is
noted here, before anybody learns of it. That costs one write for all logs that were synced together, and no
sync: a kill takes nothing, and what a power cut brings back is older and still true. Only lowering an offset
has to be synced, and what a log start goes by that is about to survive a power cut.

    off size  header                     each slot of 32 bytes
     0   8    "ottla-so"                  0  16    topic id
     8   4    version = 1                16   4    partition
    12  20    zeros                      20   8    offset
                                         28   4    CRC-32C of 0..28

Big-endian. A slot with a wrong checksum says nothing. No slot lies across two sectors of a disk.

The file is removed at a clean stop: Apache Kafka would not keep it up to date.
"""

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from ottla.model.ids import NO_OFFSET, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.partition_metadata import FILE as PARTITION_METADATA_FILE
from ottla.storage.log_dirs.partition_metadata import decode_partition_metadata
from ottla.world.disk import Disk, DiskError, File, Reason

if TYPE_CHECKING:
    from ottla.storage.log import Log

FILE: Final = ".ottla-synced-offsets"
VERSION: Final = 1
SLOT_BYTES: Final = 32

_HEADER: Final = b"ottla-so" + VERSION.to_bytes(4) + bytes(20)
_SLOT: Final = Struct(">16siq")
_OFFSET: Final = Struct(">q")
_OFFSET_AT: Final = 20
_CRC: Final = Struct(">I")
_CRC_AT: Final = 28
# From this few bytes for each slot on, one write of all between is cheaper than many.
_TOGETHER_BYTES: Final = 4096

_Key = tuple[bytes, int]


class SyncedOffsets:
    """The file of one log directory, and what it says."""

    __slots__ = ("_dirty", "_disk", "_file", "_image", "_path", "_slots")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{FILE}"
        self._file: File | None = None
        self._image = bytearray(_HEADER)
        # Where in the file each log has its slot.
        self._slots: dict[_Key, int] = {}
        self._dirty: list[int] = []

    def read(self, *, is_clean: bool) -> None:
        """Read what the last run noted. After a clean stop there is nothing to know."""
        if is_clean:
            return
        try:
            content = self._disk.read_file(self._path)
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return
        if content[:SLOT_BYTES] != _HEADER:
            return
        whole = len(content) - len(content) % SLOT_BYTES
        self._image = bytearray(content[:whole])
        for position in range(SLOT_BYTES, whole, SLOT_BYTES):
            key, offset = self._read(position)
            if offset >= 0:
                self._slots[key] = position

    @property
    def has_notes(self) -> bool:
        """Whether anything is noted."""
        return bool(self._slots)

    def begin(self) -> None:
        """Begin to write. What the last run noted survives: a repair goes by it, and may be interrupted."""
        if not self._slots:
            self._remove_file()
            return
        self._file = self._disk.open(self._path)
        self._file.sync()

    def save_for_good(self) -> None:
        """Write down what was noted, and make it survive a power cut."""
        self.save()
        self._open().sync()

    def _read(self, position: int) -> tuple[_Key, Offset]:
        topic_id, partition, offset = _SLOT.unpack_from(self._image, position)
        (crc,) = _CRC.unpack_from(self._image, position + _CRC_AT)
        is_right = crc == crc32c(self._image[position : position + _CRC_AT])
        return (topic_id, partition), Offset(offset) if is_right else NO_OFFSET

    def _open(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path, create=True)
            self._file.truncate(0)
            self._file.write(0, (bytes(self._image),))
            self._file.sync()
            self._disk.sync_directory(self._path.rpartition("/")[0])
        return self._file

    def all_noted(self) -> Iterator[tuple[Uuid, int, Offset]]:
        """Give the topic id and number of every partition that was noted, with its offset."""
        for (topic_id, number), position in self._slots.items():
            yield Uuid(topic_id), number, self._read(position)[1]

    def find(self, log_path: str, partition: TopicPartition, topic_id: Uuid | None = None) -> Offset:
        """Return how far the log in a directory was synced, or -1 if that is not known.

        Without a `topic_id`, the directory tells.
        """
        if not self._slots:
            return NO_OFFSET
        if topic_id is None:
            topic_id = self._read_topic_id(log_path)
        if topic_id is None:
            return NO_OFFSET
        position = self._slots.get((topic_id, partition.partition))
        return NO_OFFSET if position is None else self._read(position)[1]

    def _read_topic_id(self, log_path: str) -> Uuid | None:
        try:
            return decode_partition_metadata(self._disk.read_file(f"{log_path}/{PARTITION_METADATA_FILE}"))
        except CorruptFile:
            return None
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return None

    def note(self, log: "Log", offset: Offset) -> None:
        """Note that everything below `offset` was synced. `save` writes it down."""
        position = log.synced_slot
        if position < 0:
            if log.topic_id is None:
                return
            position = log.synced_slot = self._slot_of(log.topic_id, log.topic_partition.partition)
        image = self._image
        _OFFSET.pack_into(image, position + _OFFSET_AT, offset)
        _CRC.pack_into(image, position + _CRC_AT, crc32c(image[position : position + _CRC_AT]))
        self._dirty.append(position)

    def _slot_of(self, topic_id: bytes, partition: int) -> int:
        position = self._slots.get((topic_id, partition))
        if position is None:
            position = len(self._image)
            self._image += bytes(SLOT_BYTES)
            _SLOT.pack_into(self._image, position, topic_id, partition, 0)
            self._slots[topic_id, partition] = position
        return position

    def save(self) -> None:
        """Write down what was noted."""
        dirty = self._dirty
        if not dirty:
            return
        self._dirty = []
        file = self._open()
        if len(dirty) == 1:
            position = dirty[0]
            file.write(position, (bytes(self._image[position : position + SLOT_BYTES]),))
            return
        first, last = min(dirty), max(dirty)
        if last - first <= len(dirty) * _TOGETHER_BYTES:
            dirty, length = [first], last - first + SLOT_BYTES
        else:
            length = SLOT_BYTES
        for position in dirty:
            # A copy: nobody may hold on to bytes that change.
            file.write(position, (bytes(self._image[position : position + length]),))

    def lower(self, log: "Log", offset: Offset) -> None:
        """Have it known, and for good, that a log may end at `offset`."""
        noted = self._find_noted(log)
        if noted is not None and noted > offset:
            self.note(log, offset)
            self.save_for_good()

    def cover(self, log: "Log", offset: Offset) -> None:
        """Have it known, and for good, that a log reaches up to `offset`, if anything is known of it."""
        noted = self._find_noted(log)
        if noted is None:
            return
        if noted < offset:
            self.note(log, offset)
        self.save_for_good()

    def _find_noted(self, log: "Log") -> Offset | None:
        """Return what is noted of a log, or None if it has no slot."""
        if log.topic_id is None:
            return None
        position = self._slots.get((log.topic_id, log.topic_partition.partition))
        if position is None:
            return None
        log.synced_slot = position
        return self._read(position)[1]

    def remove(self) -> None:
        """Remove the file, since a clean stop says more."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._remove_file()

    def _remove_file(self) -> None:
        if self._disk.exists(self._path):
            self._disk.remove(self._path)
