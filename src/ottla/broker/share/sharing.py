"""What this node does for share groups as the leader of partitions: share partitions and sessions."""

import re
from collections.abc import Sequence
from typing import Final

from ottla.broker.logs.partition import Partition
from ottla.broker.share.acquiring import Limits
from ottla.broker.share.dead_letters import DeadLetters, Done
from ottla.broker.share.letters import DeadRun
from ottla.broker.share.persister import SharePersister
from ottla.broker.share.sessions import ShareSession, ShareSessions
from ottla.broker.share.share_node import ShareNode
from ottla.broker.share.share_partition import SharePartition, Status
from ottla.coordination.share.state import ShareKey
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.storage.read import ReadLimit
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Scheduler

_CONFIGS_MAX: Final = 10_000
_DURATION: Final = re.compile(
    r"P(?:(?P<days>[+]?[0-9]+)D)?(?:T(?:(?P<hours>[+]?[0-9]+)H)?(?:(?P<minutes>[+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[+]?[0-9]+(?:[.,][0-9]{0,9})?)S)?)?",
    re.IGNORECASE,
)


class Sharing:
    """The share partitions of a node. Implements `Surroundings`."""

    def __init__(self, broker: ShareNode, scheduler: Scheduler, persister: SharePersister) -> None:
        self._broker = broker
        self.clock = broker.clock
        self.scheduler = scheduler
        self.persister = persister
        self.sessions = ShareSessions()
        self._by_connection: dict[object, dict[tuple[str, str], ShareSession]] = {}
        self.dead_letters = DeadLetters(broker, scheduler, persister)
        self._partitions: dict[ShareKey, SharePartition] = {}
        # Those that only letters are left to do for: their group has no member here.
        self._left: set[ShareKey] = set()
        self._limits: dict[str, tuple[GroupConfig, Limits]] = {}

    # Share partitions

    def find(self, key: ShareKey) -> SharePartition | None:
        """Return a share partition that is loaded and of use."""
        found = self._partitions.get(key)
        if found is None:
            return None
        if not found.is_current:
            self._drop(found)
            return None
        return found if found.status is Status.ACTIVE else None

    def find_or_load(self, key: ShareKey) -> SharePartition | ErrorCode:
        """Return a share partition, which may be loading, or why there is none."""
        partitions = self._broker.partitions
        partition = partitions.by_key.get((key.topic_id, key.partition))
        if partition is None:
            return partitions.why_missing(key.topic_id, key.partition)
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        found = self._partitions.get(key)
        if found is not None and key in self._left:
            # The offsets of the group may have been altered meanwhile.
            self._drop(found)
            found = None
        if found is not None and not (found.is_current and found.partition is partition):
            error_code = found.error_code
            self._drop(found)
            if error_code is not ErrorCode.NONE:
                # Its member learns of it, and may ask again.
                return error_code
            found = None
        if found is None:
            found = self._partitions[key] = SharePartition(key, partition, self)
            found.load()
        return found

    def _drop(self, share_partition: SharePartition) -> None:
        share_partition.fence()
        self._left.discard(share_partition.key)
        if self._partitions.get(share_partition.key) is share_partition:
            del self._partitions[share_partition.key]

    # Sessions

    def belongs_to(self, session: ShareSession, connection: object) -> None:
        """Take note of the connection that a session ends with."""
        some = self._by_connection.setdefault(connection, {})
        some[session.group_id, session.member_id] = session

    def connection_closed(self, connection: object) -> None:
        """End the sessions of a connection."""
        for session in self._by_connection.pop(connection, {}).values():
            self.release_session(session)

    def release_session(self, session: ShareSession) -> None:
        """End a session: what its member has is available to others. Without members, nothing is kept."""
        if self.sessions.find(session.group_id, session.member_id) is not session:
            return
        self.sessions.end(session.group_id, session.member_id)
        for topic_id, number in session.partitions:
            self._release(ShareKey(session.group_id, topic_id, number), session.member_id)
        if not self.sessions.has_group(session.group_id):
            for key, share_partition in list(self._partitions.items()):
                if key.group_id == session.group_id:
                    self._maybe_leave(share_partition)

    def _maybe_leave(self, share_partition: SharePartition) -> None:
        """Drop a share partition that nobody reads, when there is nothing to do for it any more."""
        if share_partition.is_busy:
            return
        if share_partition.owes_letters:
            self._left.add(share_partition.key)
        else:
            self._drop(share_partition)

    def _release(self, key: ShareKey, member_id: str) -> None:
        found = self._partitions.get(key)
        if found is not None and found.is_current:
            found.release(member_id)

    def metadata_changed(self, _image: MetadataImage, delta: MetadataDelta) -> None:
        """Read the configs of groups again when they are next needed, if configs have changed."""
        if delta.configs:
            self._limits.clear()

    # What share partitions ask for

    def limits_of(self, group_id: str) -> Limits:
        """Return what the group allows."""
        return self._known(group_id)[1]

    def read_limit_of(self, group_id: str) -> ReadLimit:
        """Return how far a group may read."""
        group_config, _ = self._known(group_id)
        is_committed = group_config.share_isolation_level == "read_committed"
        return ReadLimit.LAST_STABLE if is_committed else ReadLimit.HIGH_WATERMARK

    def start_of(self, group_id: str, partition: Partition) -> int:
        """Return where a group starts that has never read the partition."""
        group_config, _ = self._known(group_id)
        reset, log = group_config.share_auto_offset_reset, partition.log
        if reset == "earliest":
            return log.log_start_offset
        if reset == "latest":
            return log.high_watermark
        timestamp_ms = self.clock.now_ms() - _milliseconds(reset.partition(":")[2])
        found = log.offset_for_timestamp(timestamp_ms, ReadLimit.HIGH_WATERMARK)
        return log.high_watermark if found is None else found.offset

    def write_letters(
        self, share_partition: SharePartition, runs: Sequence[DeadRun], is_first: bool, done: Done
    ) -> None:
        """Copy records that are given up to the topic of dead letters of the group."""
        group_config, _ = self._known(share_partition.key.group_id)
        self.dead_letters.write(
            share_partition.queue, share_partition.partition, runs, group_config, is_first, done
        )

    def changed(self, share_partition: SharePartition) -> None:
        """Have fetches look again that wait for a partition."""
        if share_partition.partition.parked:
            self._broker.changed(share_partition.partition)
        if not self.sessions.has_group(share_partition.key.group_id):
            # Nobody reads. If the offsets of the group are altered meanwhile, it must be loaded again.
            self._maybe_leave(share_partition)

    def _known(self, group_id: str) -> tuple[GroupConfig, Limits]:
        # To read a group's own configs takes 30 us, so the outcome is kept.
        known = self._limits.get(group_id)
        if known is None:
            group_config = self._broker.configs.group(self._broker.image.group_config(group_id))
            if len(self._limits) >= _CONFIGS_MAX:
                self._limits.clear()
            limits = Limits(
                group_config.share_delivery_count_limit,
                group_config.share_partition_max_record_locks,
                group_config.share_record_lock_duration_ms,
                group_config.share_renew_acknowledge_enable,
                bool(group_config.errors_deadletterqueue_topic_name),
            )
            known = self._limits[group_id] = (group_config, limits)
        return known


def _milliseconds(duration: str) -> int:
    """Return how long a duration such as P1DT2H is."""
    found = _DURATION.fullmatch(duration)
    assert found is not None, "the config's rule has looked at it"
    parts = {name: float(text.replace(",", ".")) for name, text in found.groupdict().items() if text}
    seconds = parts.get("seconds", 0.0) + 60 * (
        parts.get("minutes", 0.0) + 60 * (parts.get("hours", 0.0) + 24 * parts.get("days", 0.0))
    )
    return int(seconds * 1000)
