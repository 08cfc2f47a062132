"""Healing damaged replicas from others, while the node serves.

A damaged replica has lost a few batches, and everything else of it is sound. So only those are fetched, as a
consumer would, from the leader or from a follower, and put in the place of the damage (`splicing`). The
replica stays in sync meanwhile, whether it leads or follows: were it cut off at the damage instead, all that
comes after it would have one copy less until it is copied again. Readers are kept away from the damage until
it is healed (`unhealed`).

What can be fetched must be committed. If that is not enough, because the damage is not committed, too large,
or among transactions whose end a start had to guess, the replica is copied again from the damage on:

    1. the controller learns that the replica is lost (KIP-858), so that it leaves the in-sync replicas, and
       leads no more: another one does, which is not damaged
    2. once the metadata says so, the log is cut where the damage begins, and fetched again
    3. when it has everything, the controller learns where the replica lies

If no other replica has the records, they stay lost, as on a node that is alone.

A batch of which nothing but the base offset is wrong need not be fetched, and may be one that nobody else
has: where it belongs follows from its neighbours (`checking`).
"""

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.logs.directory_reports import find_record, is_lost
from ottla.broker.logs.partition import Partition
from ottla.broker.replication.replicas_node import ReplicasNode
from ottla.metadata.features import DIRECTORIES_FROM, metadata_version_of
from ottla.model.ids import Offset
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Unanswered
from ottla.storage.damages.bridged import write_bridged
from ottla.storage.damages.gaps import note_healed
from ottla.storage.damages.unhealed import Unhealed
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log import Log
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.world.disk import DiskError
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from ottla.broker.logs.healing_round import HealingRound
    from ottla.storage.damages.splicing import Received

RETRY_MS_MIN: Final = 50
RETRY_MS_MAX: Final = 5_000
"""After how long others are asked again, first and at last."""
FETCH_BYTES: Final = 1 << 20
HEALED_BYTES_MAX: Final = 32 << 20
"""How much is held in memory to be put in the place of damage. For more, the replica is copied again."""
LOST_AGAIN_MS: Final = 2_000
"""After how long the loss of a replica is reported to the controller again."""

FAILURES_MAX: Final = 3
"""How often it is tried to put something in the place of damage."""
WAITS_MAX: Final = 60
"""How often the only replica in sync waits for another one, for up to `RETRY_MS_MAX` each time."""

_logger: Final = logging.getLogger("ottla.replication")


class Healing:
    """Has the damaged replicas of this node healed."""

    def __init__(self, broker: ReplicasNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._patients: dict[Partition, _Patient] = {}
        self.healed_ranges = 0

    def found(self, partition: Partition, damaged: Iterable[Unhealed]) -> None:
        """Have damage healed that was found in a replica, if it is the only one as far as it can itself."""
        if len(partition.replicas) < 2:
            damaged = [one for one in damaged if one.is_displaced]
        log = partition.log
        known = {(one.base_offset, one.position) for one in log.unhealed}
        new = [one for one in damaged if (one.base_offset, one.position) not in known]
        log.unhealed = tuple(sorted((*log.unhealed, *new), key=_first_offset))
        log.next_positions.clear()
        if log.unhealed:
            self._begin(partition)

    def take_loaded(self, partition: Partition) -> None:
        """Have healed what the last start has found: it has covered lost offsets with empty batches."""
        log = partition.log
        lost = [one for one in log.damages if one.was_synced and one.next_offset > one.first_offset]
        log.damages = tuple([one for one in log.damages if one not in lost])
        ranges = dict.fromkeys((*((one.first_offset, one.next_offset) for one in lost), *log.bridged))
        bridged: list[Unhealed] = []
        for first_offset, next_offset in ranges:
            found = _find_bridge(log, first_offset, next_offset)
            if found is not None:
                bridged.append(found)
        if bridged:
            self.found(partition, bridged)

    def is_about_to_cut(self, partition: Partition) -> bool:
        """Say whether the log of a follower is to be cut where it is damaged.

        If it went on fetching, its leader would take it for in sync again, and it could not be cut any more.
        """
        patient = self._patients.get(partition)
        return patient is not None and patient.is_copied_again

    def copy_again(self, partition: Partition) -> None:
        """Have a follower copied again from its damage on, as soon as the controller knows that it is lost.

        What it does for its damage at the moment is ended first. If that heals it, nothing is copied.
        """
        self._begin(partition)
        patient = self._patients.get(partition)
        if patient is not None:
            patient.is_copied_again = True

    def forget(self, partition: Partition) -> None:
        """Stop: this node has no replica any more, or stops."""
        patient = self._patients.pop(partition, None)
        if patient is not None:
            patient.close()

    def stop(self) -> None:
        """Stop asking others."""
        for partition in list(self._patients):
            self.forget(partition)

    def _begin(self, partition: Partition) -> None:
        if partition not in self._patients:
            patient = self._patients[partition] = _Patient(self._broker, self._scheduler, partition, self)
            patient.go_on()

    def ended(self, partition: Partition) -> None:
        """Take note that a replica has no damage any more that can be healed."""
        self.forget(partition)


class _Patient:
    """One damaged replica, until it is healed or cannot be."""

    def __init__(
        self, broker: ReplicasNode, scheduler: Scheduler, partition: Partition, healing: Healing
    ) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._partition = partition
        self._healing = healing
        self._peers: dict[int, Link] = {}
        self._backoff_ms = 0
        self._is_closed = False
        # Brokers that have said that they lack what is missing here.
        self._without: set[int] = set()
        self.is_copied_again = False
        self._told_lost_ms = -LOST_AGAIN_MS
        self._round: HealingRound | None = None
        self._failures = 0
        self._turns = 0
        self._waits = 0

    def close(self) -> None:
        """Stop. What is being put in is in, or not, when this returns."""
        self._is_closed = True
        self._close_peers()
        if self._round is not None:
            self._round.end()

    def go_on(self) -> None:
        """Do what is next for the first damaged range."""
        log = self._partition.log
        if self._is_closed:
            return
        there = {segment.base_offset for segment in log.segments}
        log.unhealed = tuple([one for one in log.unhealed if one.base_offset in there])
        if self.is_copied_again:
            self._copy_again()
        elif not log.unhealed:
            self._close_peers()
            self._healing.ended(self._partition)
        else:
            self._ask(log.unhealed[0])

    def _later(self) -> None:
        self._backoff_ms = min(RETRY_MS_MAX, max(RETRY_MS_MIN, 2 * self._backoff_ms))
        self._scheduler.call_later(self._backoff_ms, self.go_on)

    def _close_peers(self) -> None:
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.close()

    # Asking others

    def _ask(self, damaged: Unhealed) -> None:
        partition = self._partition
        if damaged.is_displaced:
            self._put_back(damaged)
            return
        if partition.is_leader and damaged.next_offset > partition.log.high_watermark:
            # Nobody but this replica may have it, and it holds the others up.
            self._begin_copying_again()
            return
        others = [one for one in partition.replicas if one != self._broker.node_id]
        willing = [one for one in others if one not in self._without]
        if not willing:
            self._give_up(damaged)
            return
        willing.sort(key=lambda one: (one != partition.leader_id, one not in partition.in_sync))
        alive = [one for one in willing if self._broker.replication.is_alive(one)]
        if not alive:
            self._later()
            return
        from ottla.storage.damages.splicing import Received

        # One that has it may not know yet that it is committed. The next may.
        asked = alive[self._turns % len(alive)]
        self._turns += 1
        self._fetch(asked, damaged, Received(damaged, partition.log.leader_epochs))

    def _fetch(self, broker_id: int, damaged: Unhealed, received: "Received") -> None:
        partition, replication = self._partition, self._broker.replication
        wanted = FetchPartition(
            partition=partition.index,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=received.next_offset,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            topics=(FetchTopic(topic_id=partition.topic_id, partitions=(wanted,)),),
        )
        peer = self._peers.get(broker_id)
        if peer is None:
            client_id = f"broker-{self._broker.node_id}-healing"
            peer = self._peers[broker_id] = replication.peer(broker_id, client_id)
        peer.ask(
            request,
            partial(self._answered, broker_id, damaged, received),
            replication.settings.replica_socket_timeout_ms,
            version_max=replication.fetch_version_max,
        )

    def _answered(self, broker_id: int, damaged: Unhealed, received: "Received", response: Any) -> None:
        if self._is_closed:
            return
        log = self._partition.log
        if damaged not in log.unhealed:
            self.go_on()
            return
        if isinstance(response, Unanswered) or not response.responses:
            self._later()
            return
        data = response.responses[0].partitions[0]
        if data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._try_another(broker_id)
        elif data.error_code is not ErrorCode.NONE or not data.records:
            self._later()
        elif not received.take(data.records):
            self._try_another(broker_id)
        elif received.is_complete:
            self._put_in_received(broker_id, damaged, received)
        elif received.size_bytes > HEALED_BYTES_MAX:
            self._begin_copying_again()
        else:
            self._fetch(broker_id, damaged, received)

    def _try_another(self, broker_id: int) -> None:
        self._without.add(broker_id)
        self.go_on()

    def _give_up(self, damaged: Unhealed) -> None:
        partition = self._partition
        log = partition.log
        _logger.error(
            "%r: no other replica has the damaged offsets %d to %d: they are lost",
            partition,
            damaged.first_offset,
            damaged.next_offset - 1,
        )
        self._drop(damaged)
        _forget_bridged(log, damaged.first_offset, damaged.next_offset)
        log.lost = (*log.lost, damaged)
        self._without.clear()
        self.go_on()

    def _drop(self, damaged: Unhealed) -> None:
        log = self._partition.log
        log.unhealed = tuple([one for one in log.unhealed if one != damaged])

    # Putting in what they had

    def _put_in_received(self, broker_id: int, damaged: Unhealed, received: "Received") -> None:
        log = self._partition.log
        if damaged.is_bridged and (received.is_transactional or log.producer_state.open_transactions):
            # Where transactions end has been guessed, here and in what follows.
            self._begin_copying_again()
            return
        self._put_in(broker_id, damaged, received.content)

    def _put_back(self, damaged: Unhealed) -> None:
        from ottla.storage.damages.splicing import put_back

        log = self._partition.log
        try:
            content = put_back(log, damaged)
        except DiskError as error:
            _logger.critical("%s", log.volume.fail(error))
            return
        self._put_in(self._broker.node_id, damaged, content)

    def _put_in(self, broker_id: int, damaged: Unhealed, content: bytes) -> None:
        from ottla.broker.logs.healing_round import HealingRound
        from ottla.storage.damages.splicing import plan_splice

        log = self._partition.log
        if log.cleaning is not None:
            self._later()
            return
        splice = plan_splice(log, damaged, content)
        if splice is None:
            self._drop(damaged)
            self.go_on()
            return
        if not splice.fits and not self._is_complete(damaged):
            return
        round_ = HealingRound(self._broker.workers, self._broker.deletions.add, log, splice)
        self._round = round_
        round_.start(lambda: self._has_put_in(round_, broker_id, damaged))

    def _is_complete(self, damaged: Unhealed) -> bool:
        """Have the segment completed and synced, so that it can be replaced. Says whether it is."""
        from ottla.storage.roll import roll

        log = self._partition.log
        if log.active_segment.base_offset == damaged.base_offset:
            try:
                roll(log, log.log_end_offset, self._broker.clock.now_ms())
            except DiskError as error:
                _logger.critical("%s", log.volume.fail(error))
                return False
        if log.recovery_point >= log.active_segment.base_offset:
            return True
        log.volume.syncs.request(log, log.log_end_offset, lambda _error: self._later())
        return False

    def _has_put_in(self, round_: "HealingRound", broker_id: int, damaged: Unhealed) -> None:
        log, self._round = self._partition.log, None
        try:
            round_.settle()
        except LogDirectoryOffline as error:
            _logger.critical("%s", error)
        if self._is_closed:
            return
        if round_.log is not log:
            # It has moved to another directory, where its copy has nothing of the damage.
            self.go_on()
            return
        if round_.is_stale:
            self._drop(damaged)
            self._broker.scrubber.check(self._partition, damaged.first_offset)
            self.go_on()
            return
        if not round_.is_done:
            self._failures += round_.error is not None
            if self._failures < FAILURES_MAX:
                self._later()
                return
            _logger.warning("%r cannot be healed in its place: %s", self._partition, round_.error)
            self._begin_copying_again()
            return
        self._note_healed(round_, damaged)
        _logger.warning(
            "%r: healed offsets %d to %d %s%s",
            self._partition,
            damaged.first_offset,
            damaged.next_offset - 1,
            "by their neighbours" if damaged.is_displaced else f"from broker {broker_id}",
            f"; the damaged bytes are kept in {round_.kept}" if round_.kept else "",
        )
        self.go_on()

    def _note_healed(self, round_: "HealingRound", damaged: Unhealed) -> None:
        from ottla.storage.truncation import rebuild_producer_state, remove_snapshots_above

        log = self._partition.log
        self._healing.healed_ranges += 1
        self._backoff_ms = self._failures = 0
        self._without.clear()
        self._drop(damaged)
        log.damages = tuple([one for one in log.damages if one.first_offset != damaged.first_offset])
        note_healed(log, damaged.base_offset)
        log.next_positions.clear()
        log.end_position = (Offset(-1), None, 0)
        if round_.hid_batches:
            for segment in log.segments:
                if segment.base_offset == damaged.base_offset:
                    segment.reindex()
        if damaged.is_bridged:
            _forget_bridged(log, damaged.first_offset, damaged.next_offset)
            remove_snapshots_above(log, damaged.first_offset)
            log.producer_state = rebuild_producer_state(log, self._broker.clock.now_ms())
        self._broker.changed(self._partition)

    # Copying the replica again

    def _begin_copying_again(self) -> None:
        if not self.is_copied_again:
            partition = self._partition
            _logger.warning("%r is damaged in a way that it has to be copied again", partition)
            self.is_copied_again = True
        self.go_on()

    def _copy_again(self) -> None:
        partition, broker = self._partition, self._broker
        log, node_id = partition.log, broker.node_id
        if log.unhealed:
            others = [one for one in partition.in_sync if one != node_id and broker.replication.is_alive(one)]
            if not self._may_be_cut():
                if self._counts() and not others:
                    # It is the best that is left. As soon as another is in sync, that one leads.
                    self._wait_for_others()
                    return
                self._tell_lost()
                self._later()
                return
            damage = log.unhealed[0].first_offset
            broker.directory_reports.is_to_be_cut(partition)
            broker.replication.copy_from(partition, damage)
            _forget_bridged(log, damage)
            log.unhealed = log.damages = ()
        # It is sent when the replica has everything again, also if a restart comes before that.
        broker.directory_reports.add(partition)
        self.is_copied_again = False
        self.go_on()

    def _may_be_cut(self) -> bool:
        """Say whether the controller would not have this replica lead, whatever it is cut to.

        The leader may just be asking the controller to take this replica for in sync, by a fetch from before.
        Once its loss is known, the partition has another epoch, so that this is refused.
        """
        image, partition, node_id = self._broker.image, self._partition, self._broker.node_id
        record = find_record(image, partition)
        if record is None or partition.is_leader or node_id in partition.in_sync or node_id in record.isr:
            return False
        if metadata_version_of(image.features) >= DIRECTORIES_FROM:
            return is_lost(record, node_id)
        return node_id not in (record.eligible_leader_replicas or ())

    def _counts(self) -> bool:
        """Say whether this replica leads, or may be elected."""
        partition, node_id = self._partition, self._broker.node_id
        record = find_record(self._broker.image, partition)
        known = () if record is None else (*record.isr, *(record.eligible_leader_replicas or ()))
        return partition.is_leader or node_id in partition.in_sync or node_id in known

    def _wait_for_others(self) -> None:
        """Wait until another replica is in sync, but not for ever: none may get past the damage here."""
        self._waits += 1
        if self._waits < WAITS_MAX:
            self._later()
        else:
            self.is_copied_again = False
            self._give_up(self._partition.log.unhealed[0])

    def _tell_lost(self) -> None:
        """Have the controller make another replica the leader, and take this one out of those in sync."""
        now_ms = self._broker.clock.monotonic_ms()
        if now_ms - self._told_lost_ms < LOST_AGAIN_MS:
            return
        self._told_lost_ms = now_ms
        self._broker.directory_reports.add_lost(self._partition.topic_id, self._partition.index)


def _forget_bridged(log: Log, first_offset: Offset, next_offset: Offset | None = None) -> None:
    """Note that nothing is missing between two offsets any more, or from the first one on."""
    left = [
        one
        for one in log.bridged
        if one[0] < first_offset or (next_offset is not None and one[0] >= next_offset)
    ]
    if len(left) < len(log.bridged):
        log.bridged = tuple(left)
        try:
            write_bridged(log.volume.disk, log.path, left)
        except DiskError as error:
            _logger.critical("%s", log.volume.fail(error))


def _first_offset(one: Unhealed) -> Offset:
    return one.first_offset


def _find_bridge(log: Log, first_offset: Offset, next_offset: Offset) -> Unhealed | None:
    """Find the batches that a start has put in the place of what is lost."""
    if not log.log_start_offset < next_offset <= log.log_end_offset:
        return None
    segment = next(log.segments_from(first_offset))
    start = segment.find_batch(first_offset)
    if start is None:
        return None
    end = segment.find_batch(next_offset) if next_offset < log.end_of(segment) else None
    return Unhealed(
        segment.base_offset,
        start.position,
        segment.size if end is None else end.position,
        first_offset,
        min(next_offset, log.end_of(segment)),
        is_bridged=True,
    )
