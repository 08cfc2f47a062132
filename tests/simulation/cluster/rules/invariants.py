"""What must hold in a cluster at every moment, looked at from outside every few milliseconds.

The observer sees the state of all nodes at once, which no client can. It remembers what was committed, and
holds every replica to it for the rest of the run.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Final

from tests.simulation.cluster.clients.careless import is_careless
from tests.simulation.cluster.clients.hostile import MARKED, Lag
from tests.simulation.cluster.meeting.watching import Meetings
from tests.simulation.cluster.rules.configs import ConfigRules
from tests.simulation.cluster.rules.coordinators import CoordinatorRules, check_producer_ids
from tests.simulation.cluster.rules.durable import (
    SyncedEnds,
    check_cut_is_synced,
    check_durable,
    check_recovery_points,
    check_snapshots,
    check_stop_mark,
)
from tests.simulation.cluster.rules.eligible import EligibleRules
from tests.simulation.cluster.rules.loops import LoopRules
from tests.simulation.cluster.rules.metadata import MetadataRules
from tests.simulation.cluster.rules.observing import read_unnoticed
from tests.simulation.cluster.rules.promises import Promises
from tests.simulation.cluster.rules.quorum import QuorumRules
from tests.simulation.cluster.rules.replicas import (
    check_cut,
    check_replica,
    check_stable,
    epochs_with_records,
)
from tests.simulation.cluster.rules.sessions import SessionRules
from tests.simulation.cluster.rules.wrong import Wrong, must
from tests.simulation.storage.batches import HEADER

from ottla.broker.logs.partition import Partition
from ottla.broker.logs.scrubber import Scrubber
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.controller.partitions.replicas import has_directory_online
from ottla.quorum.raft.states import Leader
from ottla.storage.log import Log
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Machine

LOOK_US: Final = 40_000
DISK_LOOKS: Final = 12
"""Disks are looked at each so many times: that takes longer."""
SETTLED_US: Final = 4_000_000
QUIET_S_MAX: Final = 60
ANSWER_US_MAX: Final = 2_500_000
"""How long an answer may be on its way: clients do not wait longer."""
_PLENTY: Final = 1 << 30

Place = tuple[Uuid, int]
METADATA: Final[Place] = (ZERO_UUID, 0)
Batch = tuple[int, int, int, int]
"""Base offset, last offset, leader epoch, checksum."""


class Committed:
    """The batches of one log that are committed: they stay what they are, on every replica."""

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}

    def check(self, name: str, log: Log, begin: int, end: int) -> None:
        """Compare batches of a replica with those that are known, and remember the others."""
        offset = max(begin, log.log_start_offset)
        while offset < end:
            data = read_unnoticed(log, offset, _PLENTY)
            must(bool(data), f"prefix: {name} has nothing at {offset}, but {end} is committed")
            for found in _batches(data):
                if found[0] >= end:
                    return
                known = self.batches.setdefault(found[0], found)
                must(found == known, f"prefix: {name} has {found}, but {known} was committed")
                offset = found[1] + 1


def _batches(data: bytes) -> Iterator[Batch]:
    position = 0
    while position < len(data):
        base_offset, length, epoch, _, crc, _, delta, *_ = HEADER.unpack_from(data, position)
        yield base_offset, base_offset + delta, epoch, crc
        position += 12 + length


class Invariants:
    """Looks at all nodes again and again. What is wrong ends the simulation."""

    def __init__(
        self, cluster: SimulatedCluster, tell: Callable[[str], None], meetings: Meetings | None = None
    ) -> None:
        """`tell` takes what a story should mention: who was elected. `meetings` counts what is seen."""
        self._meetings = meetings or Meetings()
        self._cluster = cluster
        self._tell = tell
        self._machine = Machine(cluster.simulation, "observer", "10.0.2.1")
        self._looks = 0
        self._leaders: dict[tuple[Place, int], int] = {}
        self._newest: dict[Place, int] = {}
        # The highest high watermark that any leader has had.
        self._highest: dict[Place, int] = {}
        self._quorum_leaders: dict[int, int] = {}
        self._committed: dict[Place, Committed] = {}
        # How far each replica was compared already. One that was loaded again, or cut, is compared again.
        self._compared: dict[tuple[int, Place], tuple[Log, int, int]] = {}
        # When a partition last had a leader that did not know that another one was elected.
        self._contested_us: dict[tuple[str, int], int] = {}
        # How often each node was started, and when that was seen first.
        self._boots: dict[int, tuple[int, int]] = {}
        self.promises = Promises()
        self._quorum = QuorumRules(cluster, self._has_settled)
        self._coordinators = CoordinatorRules(cluster)
        self._configs = ConfigRules()
        self._eligible = EligibleRules(cluster)
        self._loops = LoopRules()
        self._sessions = SessionRules(cluster)
        self._metadata = MetadataRules(self._meetings.partition_changed)
        # How often files of a node were cut, and how often each of its logs.
        self._cuts: dict[int, int] = {}
        self._truncations: dict[Log, int] = {}
        self._ends = SyncedEnds()
        # What was seen of each replica at the last look. If it is the same, little is left to check.
        self._replicas: dict[tuple[int, Place], tuple[object, ...]] = {}
        # Since when all nodes serve, and how often each was started by then.
        self._all_serve: tuple[list[int], int] = ([], 0)
        # Since when a follower is silent, and since when a partition has too few replicas in sync.
        self._silent_us: dict[tuple[Place, int], int] = {}
        self._too_few_us: dict[tuple[str, int], int] = {}
        # The epochs and the log end of partitions that have too few replicas in sync to take records.
        self._refusing: dict[Place, tuple[tuple[int, int], int]] = {}
        # Replicas with damaged bytes on their disks, until they are healed.
        self._rotten: set[tuple[int, Place]] = set()
        # How often a node has to have looked for damage, so that it has found all there is.
        self._rounds_due: dict[int, tuple[Scrubber, int]] = {}

    def begin(self) -> None:
        """Begin to look now and then."""
        self._machine.call_later_us(LOOK_US, self._look)

    def begin_with_turns(self) -> None:
        """Begin to look before each turn of a node, also while it starts."""
        for one in self._cluster:
            one.machine.before_turn = partial(self._look_before_turn, one)

    def note_rot(self, node_id: int, place: Place) -> None:
        """Take note that a replica is damaged. It is not compared before the end."""
        self._rotten.add((node_id, place))
        node = self._cluster[node_id].node
        assert node is not None, "only disks of nodes that serve are damaged"
        # The round that is under way may have passed the place already.
        self._rounds_due[node_id] = (node.broker.scrubber, node.broker.scrubber.rounds + 2)

    def _look_before_turn(self, one: SimulatedNode) -> None:
        self.promises.check()
        self._quorum.look(one)
        if one.node is not None:
            self._metadata.look(one)
            self._sessions.look_before_turn(one)
            cuts = one.disk.counters.cuts
            if self._cuts.get(one.node_id) != cuts:
                self._cuts[one.node_id] = cuts
                self._look_at_cuts(one)

    def _look_at_cuts(self, one: SimulatedNode) -> None:
        """A log that was cut has all that is committed, and knows what follows from what is left."""
        assert one.node is not None
        for directory in one.node.parts.directories.online:
            check_recovery_points(f"node {one.node_id}", [*directory.logs.values()], one.disk, directory.path)
        for part in one.node.broker.partitions:
            log = part.log
            if log.truncations == self._truncations.get(log, 0):
                continue
            self._truncations[log] = log.truncations
            if log.volume.error is not None or (one.node_id, (part.topic_id, part.index)) in self._rotten:
                continue
            check_cut_is_synced(f"{part} of node {one.node_id}", log, one.disk)
            must(
                log.cleaning is None,
                f"log: {part} of node {one.node_id} was cut, and is being compacted as it was before",
            )
            highest = self._highest.get((part.topic_id, part.index), 0)
            must(
                log.log_end_offset >= highest
                or one.node_id not in self._in_sync(part)
                or is_careless(part.topic),
                f"committed: {part} of node {one.node_id} was cut to {log.log_end_offset}, but {highest} "
                "were committed",
            )
            rng = Random(self._cluster.simulation.seed)
            check = check_replica if part.is_leader else check_cut
            check(f"{part} of node {one.node_id}", log, rng)

    def _in_sync(self, part: Partition) -> set[int]:
        """Return who is in sync for sure: in the eyes of the controller and of the newest leader."""
        found: set[int] | None = None
        for other in self._cluster.serving:
            assert other.node is not None
            known = other.node.broker.partitions.by_key.get((part.topic_id, part.index))
            if known is not None:
                found = set(known.in_sync) if found is None else found & set(known.in_sync)
        return found or set()

    def was_contested(self, topic: str, partition: int, since_us: int) -> bool:
        """Say whether two nodes have led a partition, in different epochs, at a time since then.

        The older one takes no more writes, for its followers are gone. But it answers readers with what it
        knows, as in Apache Kafka, until it hears of the other.
        """
        return self._contested_us.get((topic, partition), -1) >= since_us - 2 * LOOK_US

    def acknowledged(self, topic: str, partition: int, offset: int) -> None:
        """An acks=all write was acknowledged: it is on the disks of all replicas that are in sync."""
        replicas = {
            one: part
            for one in self._cluster.serving
            if one.node is not None
            and (part := one.node.broker.partitions.find(topic, partition)) is not None
        }
        newest_epoch = max([part.leader_epoch for part in replicas.values()], default=0)
        # The one that has acknowledged it may be gone, and a leader of an older epoch not know of it.
        leaders = [part for part in replicas.values() if part.is_leader and part.leader_epoch == newest_epoch]
        if not leaders:
            return
        leader = leaders[0]
        if self._have_served_long():
            committed = max(part.log.high_watermark for part in replicas.values())
            must(
                offset < committed,
                f"committed: {offset} of {topic}-{partition} was acknowledged, but only {committed} are "
                "committed",
            )
        too_few_us = self._too_few_us.get((topic, partition))
        # There may be enough again since the observer has looked.
        if too_few_us is not None and len(leader.in_sync) < leader.in_sync_replicas_min:
            must(
                self._cluster.simulation.now_us < too_few_us + ANSWER_US_MAX,
                f"min-in-sync: {topic}-{partition} has acknowledged {offset}, but only "
                f"{sorted(leader.in_sync)} have been in sync for seconds",
            )
        for one, part in replicas.items():
            if one.node_id in leader.in_sync and self._has_settled(one) and part.log.volume.error is None:
                must(
                    part.log.recovery_point > offset,
                    f"on-disk: {topic}-{partition} has acknowledged {offset}, but in-sync replica "
                    f"{one.node_id} has synced up to {part.log.recovery_point}",
                )

    def read(self, topic: str, partition: int, offset: int) -> None:
        """A consumer has read a record: it is committed, unless a node knows that which is gone."""
        if not self._have_served_long():
            return
        committed = max(
            (
                part.log.high_watermark
                for one in self._cluster.serving
                if one.node is not None
                and (part := one.node.broker.partitions.find(topic, partition)) is not None
            ),
            default=1 << 62,
        )
        must(
            offset < committed,
            f"committed: {offset} of {topic}-{partition} was read, but only {committed} are committed",
        )

    def lagging_leaders(self) -> list[Lag]:
        """Return the newest leaders that do not know yet what was committed before they were elected."""
        found = []
        for one in self._cluster.serving:
            assert one.node is not None
            for part in one.node.broker.partitions:
                place = (part.topic_id, part.index)
                committed = self._highest.get(place, 0)
                if (
                    part.is_leader
                    and part.leader_epoch >= self._newest.get(place, -1)
                    and part.log.high_watermark < committed
                ):
                    found.append(Lag(one.node_id, part.topic, part.index, part.leader_epoch, committed))
        return found

    def leaders_of(self, topic: str, partition: int) -> list[int]:
        """Return the nodes that lead a partition, as far as they know."""
        found = [
            (one.node_id, one.node.broker.partitions.find(topic, partition))
            for one in self._cluster.serving
            if one.node is not None
        ]
        return [node_id for node_id, part in found if part is not None and part.is_leader]

    def _have_served_long(self) -> bool:
        """Say whether all nodes serve, and none was started since any answer that is on its way."""
        boots = [one.disk.boots for one in self._cluster if one.node is not None]
        since_us = self._all_serve[1] + ANSWER_US_MAX
        return self._all_serve[0] == boots and self._cluster.simulation.now_us >= since_us

    def _has_settled(self, one: SimulatedNode) -> bool:
        """Say whether a node has synced everything that it has found at its last start."""
        # Before its first crash a disk has nothing that was not written in this life.
        boots, since_us = self._boots.get(one.node_id, (0, -SETTLED_US - 1))
        if boots != one.disk.boots:
            self._boots[one.node_id] = (one.disk.boots, self._cluster.simulation.now_us)
            return False
        return self._cluster.simulation.now_us > since_us + SETTLED_US

    def _look(self) -> None:
        serving = self._cluster.serving
        partitions = [list(one.node.broker.partitions) for one in serving if one.node is not None]
        self._look_for_old_leaders(partitions)
        boots = [one.disk.boots for one in self._cluster if one.node is not None]
        if boots != self._all_serve[0] or len(boots) < len(self._cluster.nodes):
            self._all_serve = (boots, self._cluster.simulation.now_us)
        self._looks += 1
        self._meetings.look(self._cluster)
        for one, parts in zip(serving, partitions, strict=True):
            self._look_at_quorum(one)
            self._has_settled(one)
            self._coordinators.look(one)
            self._configs.look(one)
            for part in parts:
                self._look_at_partition(one, part, serving)
            self._loops.look(one, self._cluster.simulation.now_us)
            if self._looks % DISK_LOOKS == one.node_id % DISK_LOOKS:
                self._look_at_disk(one, is_quiet=False)
        self._sessions.look()
        if self._looks % DISK_LOOKS == 0:
            self._eligible.look(self._highest)
        self._machine.call_later_us(LOOK_US, self._look)

    def _look_at_disk(self, one: SimulatedNode, *, is_quiet: bool) -> None:
        assert one.node is not None
        name = f"node {one.node_id}"
        log = one.node.parts.quorum.driver.log
        check_durable(f"the metadata log of {name}", log, one.disk, self._ends, is_quiet=is_quiet)
        check_snapshots(name, one.disk, log.path)
        for part in one.node.broker.partitions:
            if (one.node_id, (part.topic_id, part.index)) not in self._rotten:
                check_durable(f"{part} of {name}", part.log, one.disk, self._ends, is_quiet=is_quiet)
        for directory in one.node.parts.directories.online:
            check_recovery_points(name, [*directory.logs.values()], one.disk, directory.path)
            check_stop_mark(name, one.disk, directory.path)

    def _look_for_old_leaders(self, partitions: list[list[Partition]]) -> None:
        epochs: dict[tuple[str, int], int] = {}
        for parts in partitions:
            for part in parts:
                place = (part.topic, part.index)
                if part.leader_epoch != epochs.setdefault(place, part.leader_epoch):
                    self._contested_us[place] = self._cluster.simulation.now_us

    # What is done most often writes no complaint before there is reason to complain.

    def _look_at_quorum(self, one: SimulatedNode) -> None:
        assert one.node is not None
        quorum = one.node.parts.quorum
        replica = quorum.driver.replica
        if isinstance(replica.state, Leader):
            if replica.epoch not in self._quorum_leaders:
                self._tell(f"node {one.node_id} leads the quorum in epoch {replica.epoch}")
            leader = self._quorum_leaders.setdefault(replica.epoch, one.node_id)
            if leader != one.node_id:
                raise Wrong(
                    f"one-leader: nodes {leader} and {one.node_id} lead the quorum in epoch {replica.epoch}"
                )
        if quorum.driver.log.volume.error is None:
            self._compare(one, METADATA, "the metadata log", quorum.driver.log, quorum.driver.high_watermark)

    def _look_at_partition(self, one: SimulatedNode, part: Partition, serving: list[SimulatedNode]) -> None:
        log = part.log
        if log.volume.error is not None:
            return
        place = (part.topic_id, part.index)
        if part.is_leader:
            self._look_at_leader(one, part, place, serving)
        seen = (
            log,
            log.truncations,
            log.log_start_offset,
            log.high_watermark,
            log.recovery_point,
            log.log_end_offset,
            len(log.unhealed),
            len(part.in_sync),
        )
        if self._replicas.get((one.node_id, place)) != seen:
            self._look_at_replica(one, part, place)
            self._replicas[one.node_id, place] = seen

    def _look_at_replica(self, one: SimulatedNode, part: Partition, place: Place) -> None:
        log = part.log
        stable, committed, end = log.last_stable_offset, log.high_watermark, log.log_end_offset
        if not log.log_start_offset <= stable <= committed <= end:
            raise Wrong(
                f"bounds: {part} of node {one.node_id}: {log.log_start_offset} {stable} {committed} {end}"
            )
        for first, marker in log.producer_state.unreplicated.items():
            if marker >= committed and first < stable:
                raise Wrong(
                    f"stable: {part} of node {one.node_id}: what was decided at {marker} counts as stable, "
                    f"but only {committed} are committed"
                )
        if is_careless(part.topic):
            # What is committed here may be lost all the same. In the end all replicas are compared.
            return
        if not log.config.is_compacted and (one.node_id, place) not in self._rotten and not log.unhealed:
            if committed != end:
                check_stable(part, log, is_fresh=_is_fresh(one, log))
            self._compare(one, place, part, log, _committed_end(part))

    def _look_at_leader(
        self, one: SimulatedNode, part: Partition, place: Place, serving: list[SimulatedNode]
    ) -> None:
        log, epoch = part.log, part.leader_epoch
        if epoch and (place, epoch) not in self._leaders:
            self._tell(
                f"node {one.node_id} leads {part.topic}-{part.index} in epoch {epoch}: "
                f"in sync {sorted(part.in_sync)}, committed {log.high_watermark} of {log.log_end_offset}"
            )
        leader = self._leaders.setdefault((place, epoch), one.node_id)
        if leader != one.node_id:
            raise Wrong(f"one-leader: nodes {leader} and {one.node_id} lead {part} in epoch {epoch}")
        if log.leader_epochs.latest != epoch:
            raise Wrong(
                f"epoch: {part} is led by node {one.node_id} in epoch {epoch}, but its log knows epoch "
                f"{log.leader_epochs.latest}"
            )
        if epoch < self._newest.get(place, -1):
            # Another one was elected. This one has not heard of it.
            return
        self._newest[place] = epoch
        if is_careless(part.topic):
            return
        highest = self._highest.get(place, 0)
        if log.log_end_offset < highest:
            raise Wrong(
                f"committed: {part} ends at {log.log_end_offset} on node {one.node_id}, which leads, "
                f"but {highest} were committed"
            )
        synced = _committed_end(part)
        if synced > highest:
            self._highest[place] = synced
        if part.leading is not None:
            self._look_for_silence(one, part, place)
            self._look_at_in_sync(part, place, serving)

    def _compare(self, one: SimulatedNode, place: Place, name: object, log: Log, end: int) -> None:
        """Compare what is committed on a node with what was committed on others."""
        known = self._compared.get((one.node_id, place))
        now = (log, end, log.truncations)
        if now == known:
            return
        begin = known[1] if known is not None and known[0] is log and known[2] == log.truncations else 0
        if end > begin:
            committed = self._committed.setdefault(place, Committed())
            committed.check(f"{name} of node {one.node_id}", log, begin, end)
        self._compared[one.node_id, place] = now

    def _look_at_in_sync(self, part: Partition, place: Place, serving: list[SimulatedNode]) -> None:
        """What is committed is in the logs of all in-sync replicas, on their disks."""
        committed, in_sync = part.log.high_watermark, part.in_sync
        for other in serving:
            if other.node_id in in_sync:
                assert other.node is not None
                replica = other.node.broker.partitions.by_key.get(place)
                if replica is not None and replica.log.volume.error is None:
                    log = replica.log
                    if log.log_end_offset < committed:
                        raise Wrong(
                            f"in-sync: {part} is committed up to {committed}, but in-sync replica "
                            f"{other.node_id} ends at {log.log_end_offset}"
                        )
                    if (
                        log.recovery_point < committed
                        and log.config.acks_all_sync
                        and self._has_settled(other)
                    ):
                        raise Wrong(
                            f"on-disk: {part} is committed up to {committed}, but in-sync replica "
                            f"{other.node_id} has synced up to {log.recovery_point}"
                        )

    def _look_for_silence(self, one: SimulatedNode, part: Partition, place: Place) -> None:
        """A follower that does not fetch is to leave the in-sync replicas; too few of them take no writes."""
        assert part.leading is not None
        assert one.node is not None
        now_us = self._cluster.simulation.now_us
        lag_ms = one.node.broker.config.replica_lag_time_max_ms
        for follower in part.leading.followers.values():
            is_silent = (
                follower.log_end_offset != part.log.log_end_offset
                and follower.broker_id in part.in_sync
                and part.leading.proposal is None
                and not one.machine.is_paused
                and now_us // 1000 - follower.caught_up_ms > 1.2 * lag_ms
            )
            key = (place, follower.broker_id)
            if not is_silent:
                if self._silent_us:
                    self._silent_us.pop(key, None)
                continue
            since_us = self._silent_us.setdefault(key, now_us)
            # Leaders look for such followers twice in that time. A proposal begins it again.
            if now_us - since_us > 1000 * lag_ms:
                raise Wrong(
                    f"in-sync: {part}: node {follower.broker_id} is silent since {follower.caught_up_ms} ms, "
                    "but is still in sync"
                )
        if len(part.in_sync) >= part.in_sync_replicas_min:
            self._too_few_us.pop((part.topic, part.index), None)
            self._refusing.pop(place, None)
            return
        self._too_few_us.setdefault((part.topic, part.index), now_us)
        # All that clients write here is to be on several replicas. A change of epoch begins it again.
        epochs = (part.leader_epoch, part.partition_epoch)
        known_epochs, end = self._refusing.setdefault(place, (epochs, part.log.log_end_offset))
        if known_epochs != epochs:
            self._refusing[place] = (epochs, part.log.log_end_offset)
        elif end != part.log.log_end_offset and (part.topic, part.index) != MARKED:
            raise Wrong(
                f"min-in-sync: {part} has taken records up to {part.log.log_end_offset} since only "
                f"{sorted(part.in_sync)} are in sync"
            )

    def check_replicas(self) -> None:
        """All that nodes know of their logs follows from the batches."""
        rng = Random(self._cluster.simulation.seed)
        for one in self._cluster.serving:
            assert one.node is not None
            for part in one.node.broker.partitions:
                name = f"{part} of node {one.node_id}"
                check_replica(name, part.log, rng, is_fresh=_is_fresh(one, part.log))
            self._look_at_disk(one, is_quiet=True)
            self._coordinators.check_quiet(one)
        check_producer_ids(self._cluster.serving)
        self._compare_careless()

    def _compare_careless(self) -> None:
        """What is left of what may be lost is the same on all replicas."""
        known: dict[Place, Committed] = {}
        for one in self._cluster.serving:
            assert one.node is not None
            for part in one.node.broker.partitions:
                if is_careless(part.topic) and not part.log.config.is_compacted:
                    committed = known.setdefault((part.topic_id, part.index), Committed())
                    name = f"{part} of node {one.node_id}"
                    committed.check(name, part.log, part.log.log_start_offset, part.log.log_end_offset)

    async def check_quiet(self) -> None:
        """When nothing happens any more, all replicas are in sync, equal, and without open transactions."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + QUIET_S_MAX
        while (complaint := self._find_unquiet() or self._find_damage()) is not None:
            must(loop.time() < deadline, f"quiet: {complaint}")
            await asyncio.sleep(0.5)

    def _find_damage(self) -> str | None:
        for one in self._cluster.serving:
            assert one.node is not None
            scrubber = one.node.broker.scrubber
            known, rounds = self._rounds_due.get(one.node_id, (scrubber, 0))
            if scrubber.rounds < (rounds if scrubber is known else 1):
                return f"node {one.node_id} does not look for damage"
            for part in one.node.broker.partitions:
                if part.log.unhealed:
                    return f"{part}: damage on node {one.node_id} is not healed"
        return None

    def _find_unquiet(self) -> str | None:
        serving = self._cluster.serving
        if len(serving) < len(self._cluster.nodes):
            return "not all nodes serve"
        ends: dict[Place, tuple[int, int]] = {}
        epochs: dict[Place, list[tuple[int, int]]] = {}
        for one in serving:
            assert one.node is not None
            for part in one.node.broker.partitions:
                if part.is_leader:
                    place = (part.topic_id, part.index)
                    ends[place] = (part.log.log_end_offset, part.log.high_watermark)
                    if set(part.in_sync) != set(part.replicas):
                        return f"{part}: only {sorted(part.in_sync)} of {part.replicas} are in sync"
                    if part.log.last_stable_offset != part.log.log_end_offset:
                        return f"{part}: a transaction is open at {part.log.last_stable_offset}"
        for one in serving:
            assert one.node is not None
            for part in one.node.broker.partitions:
                bounds = (part.log.log_end_offset, part.log.high_watermark)
                end = ends.get((part.topic_id, part.index))
                if bounds != end:
                    return f"{part}: node {one.node_id} has {bounds}, but the leader {end}"
                if not _has_epochs_of_others(part, epochs):
                    return f"{part}: node {one.node_id} knows other leader epochs than another replica"
        return _find_other_metadata(serving)


def _find_other_metadata(serving: list[SimulatedNode]) -> str | None:
    """Say in what the metadata of nodes differs, or where it is not what nodes have."""
    nodes = [one.node for one in serving if one.node is not None]
    first, *others = [node.broker.image for node in nodes]
    if any(image._replace(position=first.position) != first for image in others):
        return "nodes have different metadata"
    voters = {node.parts.quorum.driver.replica.voters.keys for node in nodes}
    if len(voters) > 1:
        return f"nodes know different voters: {sorted(voters)}"
    return _find_lost_directory(first)


def _find_lost_directory(image: MetadataImage) -> str | None:
    """Say which replica the controller takes for one on a lost disk. It would not elect that one."""
    for topic in image.topics:
        for number, record in topic.partitions.items():
            for broker_id, directory_id in zip(record.replicas, record.directories, strict=False):
                if not has_directory_online(image.brokers, broker_id, directory_id):
                    return f"{topic.name}-{number}: the replica of node {broker_id} is in no known directory"
    return None


def _committed_end(part: Partition) -> Offset:
    """Return up to where nothing may be lost any more.

    Alone, a leader has committed what it has written. It tells nobody before that is synced.
    """
    log = part.log
    return log.high_watermark if len(part.in_sync) > 1 else min(log.high_watermark, log.recovery_point)


def _is_fresh(one: SimulatedNode, log: Log) -> bool:
    """Say whether all that a log knows comes from appends: it was neither loaded nor cut."""
    return one.disk.boots == 0 and log.truncations == 0


def _has_epochs_of_others(part: Partition, epochs: dict[Place, list[tuple[int, int]]]) -> bool:
    """Say whether a replica knows the same leader epochs as those that were looked at before."""
    if part.log.config.is_compacted or part.log.log_start_offset > 0:
        return True
    found = epochs_with_records(part.log)
    return epochs.setdefault((part.topic_id, part.index), found) == found
