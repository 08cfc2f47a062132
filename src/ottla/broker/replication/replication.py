"""The replicas of this node, as leader and as follower, kept in step with the metadata.

A follower's partition belongs to one fetcher: that of its leader, and of its share of `num.replica.fetchers`.
A new leader epoch lets it begin again from its log end. While the leader's broker is not there, nobody
fetches. Nothing here runs while nothing is replicated, but for one look at all partitions now and then for
followers that have fallen behind.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from ottla import __version__
from ottla.broker.limits.throttles import Throttle
from ottla.broker.logs.leading import Leading
from ottla.broker.logs.partition import Partition
from ottla.broker.replication.in_sync_changes import InSyncChanges
from ottla.broker.replication.low_watermarks import LowWatermarks
from ottla.broker.replication.replica_selector import select_by_rack
from ottla.broker.replication.replicas_node import ReplicasNode
from ottla.broker.replication.selector_names import RACK_AWARE
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.values import LONG_MAX
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import metadata_version_of
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.runtime.connections.link import BACK_OFF_MS_MIN, Link
from ottla.runtime.connections.peer import PeerMemory, PeerSettings
from ottla.runtime.slices import Slices
from ottla.storage.log import Log
from ottla.storage.syncing import committed
from ottla.storage.truncation import takes_damage
from ottla.world.network import Address
from ottla.world.scheduler import Scheduler, Timer

if TYPE_CHECKING:
    # Imported where they are needed: a node that is alone copies nothing.
    from ottla.broker.replication.fetcher import Fetcher

_FETCH_VERSIONS: Final = ((27, 18), (21, 17), (14, 16), (11, 15))
"""From which metadata.version on followers fetch in which version."""
_OLDEST_FETCH: Final = 13


class _Following(NamedTuple):
    fetcher: "Fetcher"
    leader_id: int
    leader_epoch: int


class Replication:
    """What leaders and fetchers of this node need of it. Implements `ReplicatingNode` and `FetchingNode`."""

    def __init__(self, broker: ReplicasNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self.node_id = broker.node_id
        self.clock = broker.clock
        self.scheduler = scheduler
        self.monotonic_ms = broker.clock.monotonic_ms
        # How often this node has appended to a replicated partition that it leads.
        self.appends = 0
        self.in_sync_shrinks = 0
        self.in_sync_expands = 0
        # Of records that were copied from leaders.
        self.bytes_in = 0
        self.low_watermarks = LowWatermarks(scheduler)
        samples, sample_ms = (
            self.settings.replication_quota_window_num,
            self.settings.replication_quota_window_size_seconds * 1000,
        )
        self.sending = Throttle(samples, sample_ms)
        self.copying = Throttle(samples, sample_ms)
        self.fetchers: dict[tuple[int, int], Fetcher] = {}
        self._changes = InSyncChanges(
            broker.controller.ask, scheduler, lambda: (self.node_id, self.broker_epoch)
        )
        self._following: dict[tuple[Uuid, int], _Following] = {}
        self._is_started = False
        self._timer: Timer | None = None
        self._slices = Slices(scheduler, broker.clock)

    def start(self) -> None:
        """Begin to follow, and to look after followers."""
        self._is_started = True
        for one in self._broker.partitions:
            if (one.log.damages or one.log.bridged) and len(one.replicas) > 1:
                self._broker.healing.take_loaded(one)
            self.follow(one)
        self._look_after_followers()

    def stop(self) -> None:
        """Stop following."""
        self._is_started = False
        if self._timer is not None:
            self._timer.cancel()
        self._slices.stop()
        for fetcher in self.fetchers.values():
            fetcher.close()
        self.fetchers.clear()
        self._following.clear()

    # Following the metadata

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Let fetchers follow who leads what."""
        partitions, act = self._broker.partitions, self._broker.metadata.act
        if delta.brokers:
            self._brokers_changed(image, delta)
        if delta.topics:
            for change in delta.topics:
                one = partitions.by_key.get((change.topic_id, change.partition))
                if one is not None:
                    act(self.follow, one)
                    act(self.low_watermarks.moved, one)
            self._close_idle()

    def follow(self, one: Partition) -> None:
        """Have a partition copied from its leader, unless this node leads it or nobody does."""
        key = (one.topic_id, one.index)
        following = self._following.get(key)
        is_wanted = self._is_started and not one.is_leader and self._is_alive(one.leader_id)
        if following is not None:
            if is_wanted and following[1:] == (one.leader_id, one.leader_epoch):
                return
            del self._following[key]
            following.fetcher.remove(one)
        if is_wanted:
            fetcher = self._fetcher_of(one)
            self._following[key] = _Following(fetcher, one.leader_id, one.leader_epoch)
            fetcher.add(one)

    def copy_from(self, one: Partition, offset: Offset) -> None:
        """Cut a follower's log at `offset`, and copy from there on."""
        following = self._following.pop((one.topic_id, one.index), None)
        if following is not None:
            following.fetcher.remove(one)
        self.truncate(one.log, offset)
        self.follow(one)

    def forget(self, one: Partition) -> None:
        """Stop copying a partition of which this node has no replica any more."""
        following = self._following.pop((one.topic_id, one.index), None)
        if following is not None:
            following.fetcher.remove(one)
            self._close_idle()

    def _brokers_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        before, act = delta.base.brokers, self._broker.metadata.act
        for broker_id in delta.brokers.changed:
            is_alive = _is_alive(image, broker_id)
            if is_alive == (broker_id in before and not before[broker_id].fenced):
                continue
            for one in self._broker.partitions:
                if one.leader_id == broker_id and not one.is_leader:
                    act(self.follow, one)
        # Somebody who could not be waited for may be back, or the other way round.
        for one in self._broker.partitions:
            if one.leading is not None:
                act(one.leading.maybe_advance)
                act(self.low_watermarks.moved, one)
        self._close_idle()

    def _fetcher_of(self, one: Partition) -> "Fetcher":
        from ottla.broker.replication.fetcher import Fetcher

        number = (crc32(one.topic.encode()) + one.index) % self.settings.num_replica_fetchers
        key = (one.leader_id, number)
        fetcher = self.fetchers.get(key)
        if fetcher is None:
            client_id = f"broker-{self.node_id}-fetcher-{number}"
            name = f"the fetcher from broker {one.leader_id}"
            fetcher = self.fetchers[key] = Fetcher(self, self.peer(one.leader_id, client_id), name)
        return fetcher

    def _close_idle(self) -> None:
        for key, fetcher in list(self.fetchers.items()):
            if not fetcher.partitions and not fetcher.failed:
                del self.fetchers[key]
                fetcher.close()

    # Other brokers

    def peer(self, broker_id: int, client_id: str) -> Link:
        """Return a way of its own to another broker."""
        listeners = self._broker.listeners
        return Link(
            self._broker.world,
            PeerMemory(listeners.shared_buffer, listeners.staging),
            lambda: self._find_address(broker_id),
            PeerSettings(
                client_id=client_id,
                software_version=__version__,
                request_timeout_ms=self.settings.replica_socket_timeout_ms,
                security=self._broker.peer_security,
            ),
            BACK_OFF_MS_MIN,
        )

    def _find_address(self, broker_id: int) -> Address | None:
        record = self._broker.image.brokers.get(broker_id)
        if record is None:
            return None
        listener = self.settings.inter_broker_listener
        found = (one for one in record.endpoints if one.name == listener)
        endpoint = next(found, None)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def _is_alive(self, broker_id: int) -> bool:
        return _is_alive(self._broker.image, broker_id)

    # What leaders ask for

    @property
    def broker_epoch(self) -> int:
        """That of this broker, -1 before it is registered."""
        return self._broker.broker_epoch

    @property
    def lag_ms_max(self) -> int:
        """How long a follower may be behind and still be in sync."""
        return self.settings.replica_lag_time_max_ms

    def may_be_in_sync(self, broker_id: int, fetched_epoch: int | None) -> bool:
        """Say whether a broker serves, stays, and is the one that has fetched."""
        record = self._broker.image.brokers.get(broker_id)
        if record is None or record.fenced or record.in_controlled_shutdown or fetched_epoch is None:
            return False
        return fetched_epoch in (-1, record.broker_epoch)

    def is_alive(self, broker_id: int) -> bool:
        """Say whether a broker serves."""
        return self._is_alive(broker_id)

    def is_older(self, broker_id: int, broker_epoch: int) -> bool:
        """Say whether a broker has registered again since it had this epoch."""
        record = self._broker.image.brokers.get(broker_id)
        return record is not None and not record.fenced and record.broker_epoch > broker_epoch

    def propose(self, leading: Leading) -> None:
        """Have the controller asked for other in-sync replicas."""
        self._changes.add(leading)

    def high_watermark_moved(self, one: Partition) -> None:
        """Wake consumers that wait for the partition."""
        if one.parked:
            self._broker.parked_fetches.high_watermark_moved(one)

    def low_watermark_moved(self, one: Partition) -> None:
        """Answer who waits for the followers to give up the head of their logs."""
        self.low_watermarks.moved(one)

    def _look_after_followers(self) -> None:
        """Go on without followers that have fallen behind."""
        self._slices.run("followers", self._look_at_each())
        self._timer = self.scheduler.call_later(self.lag_ms_max // 2, self._look_after_followers)

    def _look_at_each(self) -> Iterator[None]:
        for one in self._broker.partitions:
            if one.leading is not None:
                one.leading.maybe_shrink(self.monotonic_ms())
            yield

    # What fetchers ask for

    @property
    def settings(self) -> NodeConfig:
        """The configs as they are now."""
        return self._broker.config

    @property
    def fetch_version_max(self) -> int:
        """The newest version of Fetch that the cluster has agreed on."""
        level = metadata_version_of(self._broker.image.features)
        return next((version for since, version in _FETCH_VERSIONS if level >= since), _OLDEST_FETCH)

    def truncate(self, log: Log, offset: Offset) -> None:
        """Make a log end at `offset`."""
        directory = self._broker.directories.directory_of(log)
        self._broker.deletions.add_all(directory.truncate([(log, offset)], self.clock.now_ms()))
        committed.cut_off(log)
        self._broker.log_moves.was_cut(log)

    def restart_log(self, log: Log, offset: Offset) -> None:
        """Empty a log, and let it go on at `offset`."""
        directory = self._broker.directories.directory_of(log)
        self._broker.deletions.add_all(
            directory.truncate_fully_and_start_at(log, offset, self.clock.now_ms())
        )
        committed.cut_off(log)
        self._broker.log_moves.was_cut(log)

    def may_cut(self, one: Partition, offset: Offset) -> bool:
        """Say whether nothing below `offset` would go if a log is cut there.

        Otherwise the log is copied again from its damage on, once the controller knows that it is lost.
        """
        if not takes_damage(one.log, offset):
            return True
        self._broker.healing.copy_again(one)
        return False

    def may_fetch(self, one: Partition, is_behind: bool) -> bool:
        """Say whether a partition is not held back: by a throttle, or since its log is about to be cut."""
        if one.log.unhealed and self._broker.healing.is_about_to_cut(one):
            return False
        return not (is_behind and one.is_copying_limited and self.copying.is_exceeded(self.monotonic_ms()))

    def caught_up(self, one: Partition) -> None:
        """Take note of a partition that has all that its leader says is committed."""
        self._broker.directory_reports.caught_up(one)

    def fetched(self, one: Partition, size_bytes: int) -> None:
        """Take note of records that were copied."""
        self.bytes_in += size_bytes
        if one.is_copying_limited:
            self.copying.record(size_bytes, self.monotonic_ms())

    def use_dynamic_configs(self) -> None:
        """Let the limits hold that were set while running."""
        self.sending.bytes_per_second = self.settings.leader_replication_throttled_rate
        rate = self.settings.follower_replication_throttled_rate
        if self.settings.ottla_balance_auto and rate == LONG_MAX:
            rate = self.settings.ottla_balance_bytes_per_second
        self.copying.bytes_per_second = rate

    def flush_is_due(self, one: Partition) -> None:
        """Have a log synced that nobody waits for."""
        self._broker.flush_is_due(one)

    # Readers near by

    def selector_for(self, rack: str) -> Callable[[Partition, int], int] | None:
        """Return what chooses a replica for consumers in a rack."""
        if self.settings.replica_selector_class != RACK_AWARE:
            return None
        racks = {one.broker_id: one.rack for one in self._broker.image.brokers.values() if not one.fenced}
        return partial(_select, rack, racks, self.node_id)


def _select(rack: str, racks: dict[int, str | None], node_id: int, one: Partition, fetch_offset: int) -> int:
    return select_by_rack(one, fetch_offset, rack, racks, node_id)


def _is_alive(image: MetadataImage, broker_id: int) -> bool:
    record = image.brokers.get(broker_id)
    return record is not None and not record.fenced
