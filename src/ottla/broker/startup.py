"""Starting a node, step by step, up to the moment when it serves.

    lock the directories -> bind the sockets -> read the metadata -> take away the marks of a clean stop
    -> lead the metadata -> load the logs -> register the broker -> unfence it -> accept clients

Nothing is served before everything is loaded, so all of it may block. Each step gives a `NodeFailure` with a
sentence for the user when it cannot be done. Up to the marks nothing was changed that matters: a start that
is refused leaves a directory that was stopped cleanly.
"""

import logging
import random
import resource
from typing import Final, NamedTuple

from ottla.broker.bound_listeners import (
    BoundListener,
    ListenerRefused,
    advertised,
    bind,
    check_endpoints,
    with_address,
)
from ottla.broker.connection_limits import DescriptorShares, share_descriptors
from ottla.broker.deletions import Deletions
from ottla.broker.formatting import (
    FormatFailure,
    check_empty_directories,
    controller_endpoint,
    data_directories,
    format_missing,
)
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.membership import NotRegistered, join_cluster
from ottla.broker.node import Broker, Surroundings
from ottla.broker.refused_configs import ConfigRefused, check_configs
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId, TopicPartition
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY
from ottla.quorum.load import UNFINISHED_REPAIR_FILE, is_blank
from ottla.quorum.sole_voter import NotTheSoleVoter
from ottla.quorum.standalone import Standalone, StandaloneSettings, SyncedMetadata, open_standalone
from ottla.quorum.voters import VoterIdentity
from ottla.runtime.clock import SystemClock
from ottla.runtime.disk import RealDisk
from ottla.runtime.flusher import Flusher
from ottla.runtime.poller import ServingLoop
from ottla.runtime.recovery import load_logs, tell
from ottla.runtime.threads import Threads
from ottla.storage.directories import LogDirectories, open_directories
from ottla.storage.errors import DamagedLog, LogDirectoryOffline, StorageError, UnusableDirectory
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.volume import Volume
from ottla.world.disk import DiskError

_logger: Final = logging.getLogger("ottla.startup")
_REASONS: Final = (
    ConfigRefused,
    DiskError,
    FormatFailure,
    InvalidConfig,
    ListenerRefused,
    MetadataError,
    NotRegistered,
    StorageError,
)


class NodeFailure(Exception):
    """The node cannot start, or cannot go on. The message is for its user."""


class NodeOptions(NamedTuple):
    """What the command line says beside the configuration."""

    host: str | None = None
    port: int | None = None
    is_insecure: bool = False
    formats_empty: bool = False


class Node:
    """A node that was started: what there is to keep going, and to stop."""

    def __init__(
        self, broker: Broker, standalone: Standalone, loop: ServingLoop, bound: list[BoundListener]
    ) -> None:
        self.broker = broker
        self.standalone = standalone
        self.loop = loop
        self.bound = bound
        self.housekeeping = Housekeeping(broker, standalone, loop)


def start_node(configs: EffectiveConfigs, options: NodeOptions, loop: ServingLoop) -> Node:
    """Start a node. When this returns it serves, as soon as its event loop runs."""
    try:
        return _start(configs, options, loop)
    except (NotTheSoleVoter, UnknownRecord) as error:
        # Nothing is damaged.
        raise NodeFailure(str(error)) from error
    except (DamagedLog, MetadataError) as error:
        raise NodeFailure(
            f"{error}. Nothing was changed. `ottla storage repair` with the same --data or --config says "
            "what can be saved, keeps a copy of what it changes, and lets the node start again"
        ) from error
    except _REASONS as error:
        raise NodeFailure(str(error)) from error


def _start(configs: EffectiveConfigs, options: NodeOptions, loop: ServingLoop) -> Node:
    check_configs(configs.node)
    configs = with_address(configs, options.host, options.port)
    endpoints = configs.node.broker_endpoints
    check_endpoints(endpoints, options.is_insecure)
    descriptors = share_descriptors(_raise_descriptor_limit())
    disk = RealDisk(descriptors.files_max)
    directories = _open_directories(disk, configs, options)
    broker = _make_broker(configs, directories, disk, loop, descriptors)
    try:
        bound = bind(broker.listeners, endpoints)
        standalone = _open_quorum(broker)
        _load_logs(broker)
        broker.metadata.listen(broker)
        join_cluster(broker, standalone, advertised(configs.node, bound))
    except BaseException:
        broker.flusher.close()
        broker.listeners.close()
        directories.release()
        raise
    standalone.voter.request_sync = lambda: _sync(broker, standalone)
    standalone.controller.prepare = broker.prepare
    broker.groups.start(broker.image)
    broker.transactions.start(broker.image)
    broker.log_moves.resume()
    broker.listeners.start()
    return Node(broker, standalone, loop, bound)


def _raise_descriptor_limit() -> int:
    """Allow the process as many descriptors as it may have, and return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _open_directories(disk: RealDisk, configs: EffectiveConfigs, options: NodeOptions) -> LogDirectories:
    chance = random.SystemRandom()
    paths = data_directories(configs.node)
    if not options.formats_empty:
        check_empty_directories(disk, configs.node, paths)
    formatted = format_missing(disk, configs.node, paths)
    for path in formatted.directories:
        _logger.info("formatted %s for cluster %s", path, formatted.cluster_id)
    volumes = [Volume(disk, path, lambda bound: chance.randrange(bound) if bound else 0) for path in paths]
    return open_directories(volumes, NodeId(configs.node.node_id))


def _make_broker(
    configs: EffectiveConfigs,
    directories: LogDirectories,
    disk: RealDisk,
    loop: ServingLoop,
    descriptors: DescriptorShares,
) -> Broker:
    clock = SystemClock()
    cluster_id = directories.directories[0].meta.cluster_id or ""
    threads = Threads(loop)
    surroundings = Surroundings(
        loop, clock, threads, Flusher(loop), directories, Deletions(loop, disk, threads.run), descriptors
    )
    return Broker(configs.node.node_id, cluster_id, configs, PublishedMetadata(), surroundings)


def _open_quorum(broker: Broker) -> Standalone:
    """Open the metadata log, lead it, and publish what it holds."""
    config = broker.config
    directory = broker.directories.directories[0]
    _check_metadata(broker.directories)
    if directory.meta.directory_id is None:
        raise UnusableDirectory(
            directory.path, "its meta.properties has no directory.id: put back the one that it had"
        )
    settings = StandaloneSettings(
        controller=ControllerSettings(config.node_id, broker.cluster_id, broker.configs.layers.static),
        voter=VoterIdentity(config.node_id, directory.meta.directory_id, controller_endpoint(config)),
        config=config,
        static_voters=_static_voters(config),
    )
    standalone = open_standalone(
        directory.volume,
        settings,
        broker.metadata,
        broker.random,
        broker.clock.now_ms(),
        SyncedMetadata(
            directory.was_clean,
            directory.find_synced(METADATA_PARTITION),
            directory.find_stopped(METADATA_PARTITION),
        ),
        lambda: _begin(broker.directories),
    )
    directory.metadata_log = standalone.voter.log
    for damage in standalone.voter.log.damages:
        tell(directory.volume, damage)
    broker.controller = standalone.controller
    broker.kraft_version = standalone.voter.kraft_version
    broker.use_dynamic_configs(broker.image)
    return standalone


def _begin(directories: LogDirectories) -> None:
    """Let the directories be written to."""
    for directory in directories.directories:
        try:
            directory.begin()
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)


def _check_metadata(directories: LogDirectories) -> None:
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


def _static_voters(config: NodeConfig) -> list[int]:
    """Return the node ids of `controller.quorum.voters`, whose entries are `id@host:port`."""
    return [int(voter.partition("@")[0]) for voter in config.controller_quorum_voters]


def _restore_missing(broker: Broker) -> None:
    """Make the directories of logs that somebody has removed, so that their loss is noticed.

    And let those say again of which topic they are that have lost it, or they would be set aside.
    """
    directories = broker.directories.online
    for directory in directories:
        for topic_id, number in directory.noted_logs():
            topic = broker.image.topics.find_by_id(topic_id)
            record = None if topic is None else topic.partitions.get(number)
            if topic is None or record is None or broker.node_id not in record.replicas:
                continue
            partition = TopicPartition(topic.name, number)
            if not any(one.has_log(partition) for one in directories):
                directory.restore(partition, topic_id)
            elif directory.has_log(partition) and directory.find_topic_id(partition) is None:
                _logger.warning("%s in %s did not say of which topic it is", partition, directory.path)
                directory.restore(partition, topic_id)


def _load_logs(broker: Broker) -> None:
    image, partitions = broker.image, broker.partitions
    _restore_missing(broker)
    for directory in broker.directories.online:
        started_ms = broker.clock.monotonic_ms()
        try:
            plan = directory.plan_load(
                lambda topic: partitions.settings_of(image, topic).log, broker.clock.now_ms()
            )
            logs = load_logs(directory.volume, plan.loads)
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)
            continue
        for log in logs:
            broker.directories.add(directory, log)
        broker.deletions.add_all(plan.deletions)
        _logger.info(
            "loaded %d logs of %s in %d ms, %s",
            len(logs),
            directory.path,
            broker.clock.monotonic_ms() - started_ms,
            "after a clean stop" if directory.was_clean else "after no clean stop",
        )
    partitions.load(image)


def _sync(broker: Broker, standalone: Standalone) -> None:
    """Have the metadata log synced, and commit what was synced."""
    log = standalone.voter.log

    def synced(error: LogDirectoryOffline | None) -> None:
        if error is not None:
            broker.give_up(error)
        else:
            standalone.voter.synced()

    broker.flusher.request(log, log.log_end_offset, synced)
