"""Which topic a partition's directory belongs to (`partition.metadata`): its id, since a name can be reused.

    version: 0
    topic_id: 8yX_J5jBSMGMPYzBHOf-4Q

Without a newline at the end. Written before the first append. A log without it is taken for a stray.
"""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.world.disk import Disk, DiskError, Reason

FILE: Final = "partition.metadata"
VERSION: Final = 0


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    """Return the bytes of the file."""
    assert topic_id != ZERO_UUID, "a topic has an id"
    return f"version: {VERSION}\ntopic_id: {topic_id}".encode("ascii")


def decode_partition_metadata(text: bytes) -> Uuid:
    """Read the topic id."""
    fields: dict[str, str] = {}
    for line in text.decode("ascii", "replace").splitlines():
        key, separator, value = line.partition(":")
        if not separator:
            raise CorruptFile(FILE, f"malformed line {line!r}")
        fields[key.strip()] = value.strip()
    if fields.get("version") != str(VERSION):
        raise CorruptFile(FILE, f"version is {fields.get('version')!r}, {VERSION} is known")
    try:
        topic_id = Uuid.from_text(fields.get("topic_id", ""))
    except ValueError as error:
        raise CorruptFile(FILE, str(error)) from error
    if topic_id == ZERO_UUID:
        raise CorruptFile(FILE, "the zero id is not an id of a topic")
    return topic_id


def read_topic_id(disk: Disk, path: str) -> Uuid | None:
    """Return the id of the topic that a partition's directory belongs to, or None if it does not say."""
    try:
        content = disk.read_file(f"{path}/{FILE}")
        return decode_partition_metadata(content)
    except CorruptFile:
        return None
    except DiskError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        return None
