"""Metadata that is damaged on a node of several: who may fetch it again, and what to do otherwise.

A broker that is no controller has a copy that nobody counts on. Its files are set aside, and it fetches the
metadata again, as a new broker does.

A controller has acknowledged records, and they may be committed because of that. If it voted with an empty
log, it could give its vote to a controller that lacks them, and they would be lost. So it remembers that it
abstains, keeps epoch and vote, sets the rest aside, fetches the metadata again, and votes again only then:
see `raft.abstaining`.

If epoch and vote are damaged or lost too, it does not start, and says what is safe: it may begin again when
all other controllers have what is committed. In a dynamic quorum it is then another voter, with a new
directory id.
"""

from typing import Final

from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.metadata_quorum import OtherVoters
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.raft.metadata_log import ABSTAINING_FILE, QuorumStateFile
from ottla.storage.damages.damage import SUFFIX
from ottla.storage.errors import DamagedLog
from ottla.storage.log_dirs import partition_metadata
from ottla.world.disk import Disk

_REPAIR: Final = (
    "Nothing was changed. Run `ottla storage repair` with the same --data or --config: it shows the damage, "
    "keeps a copy of what it changes, and repairs the metadata"
)
_BEGIN_AGAIN: Final = (
    "Nothing was changed. The other controllers have the metadata, but this one does not know whom it has "
    "voted for: when `ottla quorum status` shows that all other voters have no lag, {remove}move "
    "{directory} away, and start with an empty one; its partitions are then copied from the other brokers"
)
_REMOVE: Final = "remove this voter with `ottla quorum remove`, "


def is_damage(error: Exception) -> bool:
    """Say whether the metadata on disk is damaged or lost, and not only unknown to this release."""
    return isinstance(error, DamagedLog | MetadataError) and not isinstance(
        error, OtherVoters | UnknownRecord
    )


def is_alone(config: NodeConfig) -> bool:
    """Say whether a node is on its own. Any other one can get metadata that it has lost from the others."""
    if not config.is_controller or config.controller_quorum_bootstrap_servers:
        return False
    return all(one.startswith(f"{config.node_id}@") for one in config.controller_quorum_voters)


def next_step(config: NodeConfig, directory: str) -> str:
    """Say what to do about damage that this node does not heal by itself."""
    if is_alone(config):
        return _REPAIR
    remove = "" if config.controller_quorum_voters else _REMOVE
    return _BEGIN_AGAIN.format(remove=remove, directory=directory)


def may_fetch_again(config: NodeConfig, disk: Disk, directory: str) -> bool:
    """Say whether a node may set its metadata aside and fetch it from the others."""
    if not config.is_controller:
        return True
    names_others = (
        len(config.controller_quorum_voters) > 1 or len(config.controller_quorum_bootstrap_servers) > 1
    )
    try:
        election = QuorumStateFile(disk, f"{directory}/{METADATA_DIRECTORY}").read()
    except MetadataError:
        return False
    return names_others and election is not None


def set_aside(disk: Disk, directory: str, *, as_controller: bool) -> None:
    """Rename all files of the metadata in a log directory, so that the log is empty.

    A controller keeps epoch and vote, and remembers first that it abstains.
    """
    path = f"{directory}/{METADATA_DIRECTORY}"
    kept = {partition_metadata.FILE}
    if as_controller:
        QuorumStateFile(disk, path).abstain()
        kept |= {QUORUM_STATE_FILE, ABSTAINING_FILE}
    for entry in disk.list(path):
        if entry.name not in kept and not entry.name.endswith(SUFFIX):
            disk.rename(f"{path}/{entry.name}", _free_name(disk, f"{path}/{entry.name}"))
    disk.sync_directory(path)


def _free_name(disk: Disk, path: str) -> str:
    name, number = path + SUFFIX, 1
    while disk.exists(name):
        number += 1
        name = f"{path}.{number}{SUFFIX}"
    return name
