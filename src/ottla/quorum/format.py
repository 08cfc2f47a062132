"""Make empty directories into log directories of a cluster, as `kafka-storage format` does.

Each gets `bootstrap.checkpoint`, and `meta.properties` last, because a directory with that file counts as
formatted. The first one, which will hold the metadata log, also gets a snapshot that names the first voters
of a dynamic quorum, if they are known. What was interrupted before that is done again from the start.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.features import METADATA_VERSION, default_levels
from ottla.model.ids import NodeId
from ottla.model.uuid import Uuid
from ottla.quorum.random_id import RandomBytes, random_id
from ottla.quorum.snapshot_file import BOOTSTRAP_FILE, FORMAT_SNAPSHOT, encode_bootstrap, encode_snapshot
from ottla.quorum.voters import DYNAMIC, VoterHistory
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.log_dirs.meta_properties import MetaProperties, encode_meta_properties
from ottla.storage.names import METADATA_PARTITION, directory_name
from ottla.wire.control_records import Voter
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.world.disk import Disk

METADATA_DIRECTORY: Final = directory_name(METADATA_PARTITION)


class NewCluster(NamedTuple):
    """What the directories of a node are formatted with."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    """The id of the directory for the metadata."""
    voters: Sequence[Voter] | None
    """The first voters of a dynamic quorum, or None if they are not known here, or a config names them."""
    features: Mapping[str, int] = default_levels()
    records: Sequence[Any] = ()
    """What goes into an empty log after the features."""


def is_formatted(disk: Disk, directory: str) -> bool:
    """Say whether a directory belongs to a cluster already."""
    return disk.exists(f"{directory}/{META_PROPERTIES_FILE}")


def find_foreign(disk: Disk, directory: str) -> str | None:
    """Return something in a directory that formatting does not make and does not tolerate, or None."""
    if not disk.exists(directory):
        return None
    harmless = {".lock", "lost+found", BOOTSTRAP_FILE, META_PROPERTIES_FILE + ".tmp", BOOTSTRAP_FILE + ".tmp"}
    for entry in disk.list(directory):
        if entry.name == METADATA_DIRECTORY:
            for inner in disk.list(f"{directory}/{METADATA_DIRECTORY}"):
                if inner.name not in (FORMAT_SNAPSHOT.file_name, FORMAT_SNAPSHOT.file_name + ".tmp"):
                    return f"{entry.name}/{inner.name}"
        elif entry.name not in harmless:
            return entry.name
    return None


def make_lasting_directory(disk: Disk, path: str) -> None:
    """Make a directory, and its parents, so that their names survive a power cut."""
    if disk.exists(path):
        return
    parent = path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
    if parent not in ("/", "."):
        make_lasting_directory(disk, parent)
    disk.make_directory(path)
    disk.sync_directory(parent)


def format_directories(
    disk: Disk, directories: Sequence[str], cluster: NewCluster, random: RandomBytes, now_ms: int
) -> None:
    """Format directories, the first of which is the one for metadata. None may be formatted already."""
    levels = [FeatureLevelRecord(name=name, feature_level=level) for name, level in cluster.features.items()]
    bootstrap = encode_bootstrap([*levels, *cluster.records], cluster.features[METADATA_VERSION], now_ms)
    for directory in directories:
        assert not is_formatted(disk, directory), f"{directory} would lose its identity"
        is_first = directory == directories[0]
        directory_id = cluster.directory_id if is_first else random_id(random)
        make_lasting_directory(disk, directory)
        disk.write_file_atomically(f"{directory}/{BOOTSTRAP_FILE}", bootstrap)
        if is_first and cluster.voters is not None:
            write_voters(disk, directory, cluster.voters, now_ms)
        meta = MetaProperties(cluster.cluster_id, cluster.node_id, directory_id)
        disk.write_file_atomically(f"{directory}/{META_PROPERTIES_FILE}", encode_meta_properties(meta))


def write_voters(disk: Disk, directory: str, voters: Sequence[Voter], now_ms: int) -> None:
    """Write the snapshot that names the first voters."""
    quorum = VoterHistory(DYNAMIC, tuple(voters))
    content = b"".join(encode_snapshot((), 0, FORMAT_SNAPSHOT.epoch, now_ms, quorum, now_ms))
    path = f"{directory}/{METADATA_DIRECTORY}"
    make_lasting_directory(disk, path)
    disk.write_file_atomically(f"{path}/{FORMAT_SNAPSHOT.file_name}", content)
