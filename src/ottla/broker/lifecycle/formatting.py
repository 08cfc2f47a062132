"""Making empty directories those of a node."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.lifecycle.format_options import NO_OPTIONS, FormatFailure, FormatOptions, plan_cluster
from ottla.broker.logs.data_directories import data_directories
from ottla.metadata.configs.node import NodeConfig
from ottla.model.ids import NodeId
from ottla.quorum.format import find_foreign, format_directories, is_formatted
from ottla.quorum.known_directories import read_known_directories
from ottla.quorum.random_id import random_id
from ottla.runtime.clock import SystemClock
from ottla.runtime.disk import RealDisk
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.log_dirs.meta_properties import MetaProperties, decode_meta_properties
from ottla.storage.log_dirs.opening import format_directory
from ottla.world.disk import Disk, DiskError
from ottla.world.randomness import Randomness


class Formatted(NamedTuple):
    """What was formatted."""

    cluster_id: str
    directories: tuple[str, ...]


def format_node(config: NodeConfig, options: FormatOptions, ignores_formatted: bool) -> Formatted:
    """Format the directories of a node that are not formatted yet."""
    disk = RealDisk()
    paths = data_directories(config)
    try:
        formatted = [path for path in paths if is_formatted(disk, path)]
        if formatted and not ignores_formatted:
            raise FormatFailure(f"{formatted[0]} is already formatted; add --ignore-formatted to skip it")
        return format_missing(disk, config, paths, random.SystemRandom(), SystemClock().now_ms(), options)
    except (DiskError, CorruptFile) as error:
        raise FormatFailure(str(error)) from error


def check_empty_directories(disk: Disk, config: NodeConfig, paths: Sequence[str]) -> None:
    """Refuse a directory that is empty, if this node has had one that is not there now.

    Its disk is probably not mounted. Formatted, it would get new logs in the place of those that it has, and
    these would have no leader when it is back. Raises `MetadataError` if the metadata cannot be read.
    """
    missing = [path for path in paths if not is_formatted(disk, path)]
    if not missing or paths[0] in missing:
        return
    present = {_read_meta(disk, path).directory_id for path in paths if path not in missing}
    lost = read_known_directories(disk, paths[0], NodeId(config.node_id)) - present
    if lost:
        raise FormatFailure(
            f"{missing[0]} is empty, but node {config.node_id} had a log directory with the id "
            f"{min(str(one) for one in lost)} that is missing now: mount its disk, or start once with "
            "--format-empty to continue without its data"
        )


def format_missing(
    disk: Disk,
    config: NodeConfig,
    paths: Sequence[str],
    chance: Randomness,
    now_ms: int,
    options: FormatOptions = NO_OPTIONS,
) -> Formatted:
    """Format those of the directories that are not formatted yet. The first is that of the metadata."""
    missing = tuple(path for path in paths if not is_formatted(disk, path))
    for path in missing:
        _check_empty(disk, path)
    if len(missing) == len(paths):
        cluster = plan_cluster(config, options, chance)
        format_directories(disk, missing, cluster, chance, now_ms)
        return Formatted(cluster.cluster_id, missing)
    if paths[0] in missing:
        raise FormatFailure(
            f"{paths[0]}, which holds the metadata, is empty, but the other directories are in use: restore "
            "it, because the node cannot use their data without it"
        )
    meta = _read_meta(disk, paths[0])
    cluster_id = options.cluster_id
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise FormatFailure(f"{paths[0]} belongs to cluster {meta.cluster_id}, not to {cluster_id}")
    for path in missing:
        format_directory(disk, path, meta._replace(directory_id=random_id(chance)))
    return Formatted(meta.cluster_id or "", missing)


def _read_meta(disk: Disk, directory: str) -> MetaProperties:
    path = f"{directory}/{META_PROPERTIES_FILE}"
    try:
        return decode_meta_properties(disk.read_file(path))
    except CorruptFile as error:
        raise FormatFailure(f"cannot use {path}: {error}; fix that, or choose another directory") from error


def _check_empty(disk: Disk, path: str) -> None:
    """Refuse a directory with something in it: it may be somebody's home, or have lost its identity."""
    foreign = find_foreign(disk, path)
    if foreign is not None:
        raise FormatFailure(
            f"{path} is not formatted, and not empty: it has {foreign}. Use an empty directory, or restore "
            f"its {META_PROPERTIES_FILE}"
        )
