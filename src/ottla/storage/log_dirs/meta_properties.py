"""Whose directory this is (`meta.properties`): cluster, node and the directory's own id.

    version=1
    cluster.id=Z29sZGVuR29sZGVuMDAwMQ
    node.id=1
    directory.id=3n9LwqijR0S7KDdmqZP55w

Java properties, in any order. Written once, when the directory is formatted. Version 0, which names a
`broker.id` and has no directory id, is read but not written.
"""

from typing import Final, NamedTuple

from ottla.model.ids import NodeId
from ottla.model.uuid import Uuid
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.properties import decode_properties, encode_properties

FILE: Final = "meta.properties"
VERSION: Final = 1

# The ids below 100 have meanings of their own (migrating, unassigned, lost) or are kept for such.
_RESERVED_DIRECTORY_IDS: Final = 100


class MetaProperties(NamedTuple):
    """The identity of a log directory. Only files of version 0 lack the last two."""

    cluster_id: str | None
    node_id: NodeId | None
    directory_id: Uuid | None


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """Return the bytes of the file."""
    assert meta.cluster_id is not None, "a directory is formatted for a cluster"
    assert meta.node_id is not None, "a directory is formatted for a node"
    properties = {"version": str(VERSION), "cluster.id": meta.cluster_id, "node.id": str(meta.node_id)}
    if meta.directory_id is not None:
        assert not is_reserved_directory_id(meta.directory_id), "the small ids have meanings of their own"
        properties["directory.id"] = str(meta.directory_id)
    return encode_properties(properties)


def decode_meta_properties(text: bytes) -> MetaProperties:
    """Read the file. Raises `CorruptFile` for one that does not identify a directory."""
    properties = decode_properties(text)
    version = _number(properties, "version")
    if version not in (0, VERSION):
        raise CorruptFile(FILE, f"version is {properties.get('version')!r}, 0 and 1 are known")
    node_id = _number(properties, "node.id" if version == VERSION else "broker.id")
    cluster_id = properties.get("cluster.id")
    if version == VERSION and (cluster_id is None or node_id is None):
        raise CorruptFile(FILE, "cluster.id or node.id is missing")
    return MetaProperties(
        cluster_id, None if node_id is None or node_id < 0 else NodeId(node_id), _directory_id(properties)
    )


def is_reserved_directory_id(directory_id: Uuid) -> bool:
    """Say whether an id is one that no directory may be given."""
    return int.from_bytes(directory_id) < _RESERVED_DIRECTORY_IDS


def _number(properties: dict[str, str], key: str) -> int | None:
    text = properties.get(key)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise CorruptFile(FILE, f"{key} is {text!r}, not a number") from error


def _directory_id(properties: dict[str, str]) -> Uuid | None:
    text = properties.get("directory.id")
    if text is None:
        return None
    try:
        directory_id = Uuid.from_text(text)
    except ValueError as error:
        raise CorruptFile(FILE, f"directory.id is {text!r}") from error
    if is_reserved_directory_id(directory_id):
        raise CorruptFile(FILE, f"directory.id {text} is reserved")
    return directory_id
