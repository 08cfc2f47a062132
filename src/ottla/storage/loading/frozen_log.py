"""A loaded log as plain values, to be carried from the process that recovered it to the one that serves it.

Everything a `Log` knows after loading, without its disk. A segment's tuple has about ten numbers, so that the
logs of a thousand partitions are some hundred kilobytes.
"""

from typing import NamedTuple

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.damages.damage import Damage
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import Log
from ottla.storage.log_dirs.checkpoints import EpochEntry
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.roll import set_jitter
from ottla.storage.segment import Segment, SegmentFacts, segment_path
from ottla.storage.volume import Volume


class FrozenLog(NamedTuple):
    """What is to be known of a loaded log."""

    path: str
    topic_partition: TopicPartition
    topic_id: Uuid | None
    log_start_offset: Offset
    log_end_offset: Offset
    recovery_point: Offset
    snapshot_offset: Offset
    has_unsynced_names: bool
    has_unsynced_epochs: bool
    unsynced_paths: tuple[str, ...]
    epochs: tuple[EpochEntry, ...]
    # None is the common case, and worth half of what would have to be carried.
    producer_state: ProducerState | None
    segments: tuple[SegmentFacts, ...]
    damages: tuple[Damage, ...]
    bridged: tuple[tuple[Offset, Offset], ...]


def freeze(log: Log) -> FrozenLog:
    """Take down what a log knows. It must not have been appended to."""
    return FrozenLog(
        log.path,
        log.topic_partition,
        log.topic_id,
        log.log_start_offset,
        log.log_end_offset,
        log.recovery_point,
        log.snapshot_offset,
        log.has_unsynced_names,
        log.has_unsynced_epochs,
        log.unsynced_paths,
        tuple(log.leader_epochs.entries),
        log.producer_state if log.producer_state.producers else None,
        tuple([segment.facts() for segment in log.segments]),
        log.damages,
        log.bridged,
    )


def thaw(frozen: FrozenLog, volume: Volume, config: LogConfig) -> Log:
    """Make a log of what was taken down."""
    log = Log(volume, frozen.path, frozen.topic_partition, frozen.topic_id, config)
    log.log_start_offset = log.high_watermark = frozen.log_start_offset
    log.log_end_offset = frozen.log_end_offset
    log.recovery_point = frozen.recovery_point
    log.snapshot_offset = frozen.snapshot_offset
    log.has_unsynced_names = frozen.has_unsynced_names
    log.has_unsynced_epochs = frozen.has_unsynced_epochs
    log.unsynced_paths = frozen.unsynced_paths
    log.leader_epochs = LeaderEpochs(frozen.epochs)
    log.damages = frozen.damages
    log.bridged = frozen.bridged
    if frozen.producer_state is not None:
        log.producer_state = frozen.producer_state
    log.segments = [_segment(volume, frozen.path, facts) for facts in frozen.segments]
    log.active_segment.keep_aborted()
    set_jitter(log.active_segment, config)
    return log


def _segment(volume: Volume, directory: str, facts: SegmentFacts) -> Segment:
    return Segment.of_facts(volume, volume.disk.open(segment_path(directory, facts.base_offset)), facts)
