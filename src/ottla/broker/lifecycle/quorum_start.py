"""Parts of the start that are about the quorum: opening the metadata log, and the ways to other replicas."""

import logging
from typing import Final

from ottla.broker.lifecycle import damaged_metadata
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.published import PublishedMetadata
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.load import UNFINISHED_REPAIR_FILE, is_blank
from ottla.quorum.metadata_log import NOTHING_KNOWN
from ottla.quorum.metadata_quorum import MetadataQuorum, QuorumSettings, QuorumWorld
from ottla.quorum.voters import Endpoint
from ottla.runtime.connections.link import BACK_OFF_MS_MIN, Link
from ottla.runtime.connections.peer import PeerMemory, PeerSecurity, PeerSettings
from ottla.storage.errors import DamagedLog, LogDirectoryOffline
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.storage.names import METADATA_PARTITION
from ottla.world.world import World

_logger: Final = logging.getLogger("ottla.startup")


def check_metadata(directories: LogDirectories) -> None:
    """Refuse data that new metadata would know nothing of: all of it would be set aside."""
    first = directories.directories[0]
    if first.volume.disk.exists(f"{first.path}/{UNFINISHED_REPAIR_FILE}"):
        raise DamagedLog(f"a repair of {METADATA_PARTITION} in {first.path} was interrupted")
    if not is_blank(first.volume.disk, f"{first.path}/{METADATA_DIRECTORY}"):
        return
    for directory in directories.directories:
        path = directory.find_data()
        if path is not None:
            raise DamagedLog(f"{METADATA_PARTITION} is empty, but {path} has records: the metadata is lost")


def begin_to_write(directories: LogDirectories) -> None:
    """Let the directories be written to."""
    for directory in directories.directories:
        try:
            directory.begin()
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)


def start_quorum(settings: QuorumSettings, metadata: PublishedMetadata, world: QuorumWorld) -> MetadataQuorum:
    """Load the metadata, and take part in the quorum. A node of several fetches damaged metadata again."""
    quorum = MetadataQuorum(settings, metadata, world)
    try:
        quorum.start()
    except Exception as error:
        volume, config = world.volume, settings.config
        is_damage = damaged_metadata.is_damage(error)
        if not is_damage or not damaged_metadata.may_fetch_again(config, volume.disk, volume.path):
            raise
        until_then = "; this controller does not vote until then" if config.is_controller else ""
        _logger.warning("%s; its files are set aside, and the metadata is fetched again%s", error, until_then)
        damaged_metadata.set_aside(volume.disk, volume.path, as_controller=config.is_controller)
        quorum = MetadataQuorum(settings, metadata, world._replace(known=NOTHING_KNOWN))
        quorum.start()
    return quorum


def make_controller_link(
    world: World, config: NodeConfig, memory: PeerMemory, security: PeerSecurity | None, endpoint: Endpoint
) -> Link:
    """Return the way to a controller."""
    settings = PeerSettings(
        client_id=f"node-{config.node_id}-to-controller",
        request_timeout_ms=config.controller_socket_timeout_ms,
        security=security,
    )
    return Link(world, memory, lambda: (endpoint.host, endpoint.port), settings, BACK_OFF_MS_MIN)


def make_quorum_link(
    world: World,
    config: NodeConfig,
    memory: PeerMemory,
    security: PeerSecurity | None,
    host: str,
    port: int,
) -> Link:
    """Return the way to another replica of the quorum."""
    settings = PeerSettings(
        client_id=f"raft-client-{config.node_id}",
        connect_timeout_ms=config.controller_quorum_request_timeout_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        security=security,
    )
    return Link(world, memory, lambda: (host, port), settings, BACK_OFF_MS_MIN)
