"""Bugs that only a wider world shows: of configs, log directories, who may lead, and habits of clients.

All of them were in the product once, until the simulation had such a world.
"""

from typing import Final

from tests.simulation.planting import Bug

from ottla.broker.controller.broker_watch import BrokerWatch
from ottla.broker.logs.directory_reports import DirectoryReports
from ottla.broker.logs.leading import Leading
from ottla.broker.logs.log_configs import SettingsOfTopics
from ottla.broker.logs.log_moves import LogMoves
from ottla.broker.logs.partitions import Partitions
from ottla.broker.membership.membership import Membership, _find_last_epoch
from ottla.broker.replication.healing import _Patient
from ottla.coordination.group.offsets.expiry import _expire_group
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction.decide import decide_end
from ottla.metadata.configs.in_force import ConfigsInForce
from ottla.quorum.controller.partitions.eligible_leaders import (
    _without_in_sync_replicas,
    begin_eligible_leaders,
)
from ottla.quorum.controller.partitions.partition_change import _eligible_leaders
from ottla.quorum.metadata_follower import MetadataFollower
from ottla.runtime.connections.connection import Connection
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Peer
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.loading.load import load_log
from ottla.storage.log_dirs.directory import LogDirectory

WIDE_BUGS: Final[dict[str, Bug]] = {
    "configs-stay-what-they-were": Bug(
        "logs obey the configs that were in force when they were asked for first",
        SettingsOfTopics.find,
        "if configs is not self._used:",
        "if self._used is None:",
    ),
    "configs-before-the-start-are-forgotten": Bug(
        "a node that starts obeys its file, whatever the metadata says, until that changes",
        ConfigsInForce.now,
        "image = self._image()",
        "image = self._image()\n"
        "    self._seen = image.configs if self._seen is EMPTY_IMAGE.configs else self._seen",
    ),
    "moves-keep-what-was-cut": Bug(
        "a log that moves is not told that its original was cut",
        LogMoves.was_cut,
        "if move.partition.log is log:",
        "if False:",
    ),
    "moves-forget-leader-epochs": Bug(
        "a log that has moved knows only the leader epochs of its batches",
        LogMoves._switch,
        "new.assign_leader_epoch(entry.epoch, entry.start_offset)",
        "pass",
    ),
    "lost-replicas-report-themselves": Bug(
        "a replica that has to be copied again reports its directory before it is in sync",
        DirectoryReports._may_be_reported,
        "if record is None or not is_lost(record, broker.node_id):",
        "if True:",
    ),
    "empty-logs-beside-a-failed-directory": Bug(
        "a replica whose directory cannot be read gets an empty log in another one",
        Partitions._may_make,
        "if not self._directories.offline_paths:",
        "if True:",
    ),
    "a-failed-directory-keeps-the-epoch": Bug(
        "a broker with a directory that failed says that it has all of its last run",
        _find_last_epoch,
        "if directories.offline_paths or broker.partitions.has_set_records_aside:",
        "if False:",
    ),
    "deletion-needs-a-follower": Bug(
        "records cannot be deleted while no follower lives",
        Leading.low_watermark,
        "return min([self.partition.log.log_start_offset, *starts])",
        "return min(self.partition.log.log_start_offset, *starts)",
    ),
    "eligible-leaders-are-forgotten": Bug(
        "who is eligible to lead is forgotten with min.insync.replicas, also where nobody leads",
        _without_in_sync_replicas,
        "if not partition.isr and",
        "if False and",
    ),
    "eligible-leaders-without-a-number": Bug(
        "a cluster that begins to keep eligible leaders leaves min.insync.replicas to each node",
        begin_eligible_leaders,
        "if MIN_ISR not in view.image.default_broker_config():",
        "if False:",
    ),
    "cleaner-checkpoint-of-an-old-topic": Bug(
        "after a crash a topic that was made again counts as compacted as far as the old one was",
        LogDirectory._lower_cleaned,
        "if is_lowered:",
        "if False:",
    ),
    "empty-share-groups-expire": Bug(
        "a share group without members is deleted with its positions",
        _expire_group,
        "and group.is_empty and group.expires:",
        "and group.is_empty:",
    ),
    "parked-for-good": Bug(
        "a coordinator lets a client wait as long as nothing is committed",
        Shard.tick,
        "if one.ticks_left <= 0:",
        "if False:",
    ),
    "abort-after-commit-is-fenced": Bug(
        "who aborts while the markers of the last commit are being written is taken for replaced",
        decide_end,
        "# Whatever its id and epoch: it may be the producer that goes on already.\n        "
        "return _refusal(ErrorCode.CONCURRENT_TRANSACTIONS)",
        "return _refusal(ErrorCode.PRODUCER_FENCED)",
    ),
    "one-refusal-is-proof": Bug(
        "a broker is fenced as soon as a connection to it is refused once",
        BrokerWatch._found_nobody,
        "if not is_second:",
        "if False:",
    ),
    "heartbeats-are-no-proof": Bug(
        "a broker whose port seems closed is fenced although its heartbeats arrive",
        BrokerWatch._found_nobody,
        "if broker not in self._heard and self._is_active():",
        "if self._is_active():",
    ),
    "stands-by-any-heartbeat": Bug(
        "a coordinator that was replaced answers from memory after its next heartbeat",
        Membership._take,
        "stands = self._is_unfenced and answer.is_caught_up",
        "stands = self._is_unfenced",
    ),
    "lost-replicas-stay-eligible": Bug(
        "a replica that has to be copied again stays eligible to lead",
        _eligible_leaders,
        "difference(isr, terms.not_eligible)",
        "difference(isr)",
    ),
    "cut-before-its-loss-is-known": Bug(
        "a damaged replica is cut while its leader may be asking for it to be in sync",
        _Patient._may_be_cut,
        "return is_lost(record, node_id)",
        "return True",
    ),
    "damaged-epochs-are-believed": Bug(
        "a start takes the damaged epoch of a batch for one of the log",
        LeaderEpochs.assign_recovered,
        "if base_offset < self._known_to:",
        "if False:",
    ),
    "answers-are-waited-for-for-ever": Bug(
        "a request on a connection that leads nowhere never times out",
        Peer.ask,
        "self._settings.request_timeout_ms if timeout_ms is None else timeout_ms,",
        "1 << 40,",
    ),
    "lost-connections-are-not-made-again": Bug(
        "a controller or a leader whose connection was lost is never asked again",
        Link._failed,
        "self._backed_off",
        "list",
    ),
    "news-behind-a-slow-part-waits": Bug(
        "metadata that came while a part was not ready waits for the next change",
        MetadataFollower._prepared,
        "self._go_on()",
        "pass",
    ),
    "news-is-published-backwards": Bug(
        "of several changes of the metadata that wait the last one is published first",
        MetadataFollower._publish_next,
        "self._unpublished.popleft()",
        "self._unpublished.pop()",
    ),
    "muted-for-good": Bug(
        "a client that was throttled is never read from again",
        Connection._on_unmute,
        "self._holds &= ~_MUTED",
        "pass",
    ),
    "what-is-bridged-is-forgotten": Bug(
        "a start does not know what an earlier one has covered by empty batches",
        load_log,
        "log.bridged = read_bridged(volume.disk, request.path)",
        "pass",
    ),
}
