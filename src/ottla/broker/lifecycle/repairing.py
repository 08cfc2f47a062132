"""Repairing the metadata of a node that refuses to start, as far as it can be saved.

    find_damage(...)      says what is damaged, and changes nothing
    repair_metadata(...)  keeps a copy of every file that it changes, and says what it did

What cannot be read is replaced by records that say nothing, so that everything behind it is read. If that
does not fit together, the log is cut where it no longer does. If not even that can be read, or if the
metadata is gone, it begins again. Then the topics that the metadata has lost are put back from the
directories of their partitions: these tell name, id and number. Configs, ACLs, quotas and users that are lost
have to be set again.

New producers get ids above all that the logs have seen. An id that is given twice would make a partition take
the records of one producer for repetitions of another's.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.broker.lifecycle.format_options import controller_endpoint
from ottla.broker.logs.data_directories import data_directories
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.errors import MetadataError, UnknownRecord
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId, Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory, write_voters
from ottla.quorum.known_directories import read_image
from ottla.quorum.load import UNFINISHED_REPAIR_FILE, is_blank, load_metadata
from ottla.quorum.metadata_log import SyncedMetadata, open_metadata_log
from ottla.quorum.metadata_quorum import MetadataQuorum, QuorumSettings, QuorumWorld
from ottla.quorum.quorum_state import FILE as QUORUM_STATE_FILE
from ottla.quorum.quorum_state import decode_quorum_state
from ottla.quorum.snapshot_file import BOOTSTRAP_FILE, decode_snapshot
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.voters import VoterIdentity, voter
from ottla.runtime.clock import SystemClock
from ottla.runtime.disk import RealDisk
from ottla.storage.damages import stopped_files
from ottla.storage.damages.damage import SUFFIX, Damage, keep_copy
from ottla.storage.errors import DamagedLog, StorageError
from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.checkpoints import LEADER_EPOCH_FILE, decode_epoch_checkpoint
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES_FILE
from ottla.storage.log_dirs.meta_properties import decode_meta_properties
from ottla.storage.log_dirs.opening import open_directory
from ottla.storage.log_dirs.partition_metadata import read_topic_id
from ottla.storage.names import (
    METADATA_PARTITION,
    DirectoryState,
    FileKind,
    find_segment_file,
    parse_directory_name,
)
from ottla.storage.producers.producer_snapshot import decode_producer_snapshot
from ottla.storage.volume import Volume
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord
from ottla.wire.metadata_records.topics import TopicRecord
from ottla.world.disk import Disk, DiskError
from ottla.world.scheduler import Timer

_PRODUCER_IDS_MARGIN: Final = 1_000_000
"""How many ids are passed over: the newest may have been seen by no snapshot of producers yet."""
_RECORDS_MAX: Final = 1000


def _call_never(_delay_ms: int, _callback: Callable[[], None]) -> Timer:
    raise AssertionError("the only voter waits for nothing")


def _raise(error: Exception) -> None:
    raise error


class RepairFailure(Exception):
    """What is damaged cannot be repaired. The message is for the user."""


class _LostPartition(NamedTuple):
    """A partition that lies in a directory, and that the metadata does not know."""

    partition: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    directory_id: Uuid


def find_damage(configs: EffectiveConfigs) -> list[str]:
    """Say what is damaged in the metadata of a node. Nothing is changed that matters."""
    with _opened(configs.node) as directory:
        return _Repair(configs, directory).find_damage()


def repair_metadata(configs: EffectiveConfigs, now_ms: int | None = None) -> list[str]:
    """Repair the metadata of a node, and return what was done, a sentence each."""
    with _opened(configs.node) as directory:
        repair = _Repair(configs, directory, now_ms)
        repair.run()
        return repair.done


@contextmanager
def _opened(config: NodeConfig) -> Iterator[LogDirectory]:
    path = data_directories(config)[0]
    try:
        directory = open_directory(Volume(RealDisk(), path), NodeId(config.node_id))
    except (StorageError, DiskError) as error:
        raise RepairFailure(str(error)) from error
    try:
        if directory.meta.directory_id is None:
            raise RepairFailure(
                f"{path}/{META_PROPERTIES_FILE} has no directory.id: restore the original one"
            )
        yield directory
    except DiskError as error:
        raise RepairFailure(str(error)) from error
    finally:
        directory.release()


class _Repair:
    """The repair of one node's metadata."""

    def __init__(self, configs: EffectiveConfigs, directory: LogDirectory, now_ms: int | None = None) -> None:
        self.configs = configs
        self.config = configs.node
        self.directory = directory
        self.disk: Disk = directory.volume.disk
        self.path = f"{directory.path}/{METADATA_DIRECTORY}"
        self.snapshots = Snapshots(self.disk, self.path)
        self.mark = f"{directory.path}/{UNFINISHED_REPAIR_FILE}"
        self.now_ms = SystemClock().now_ms() if now_ms is None else now_ms
        self.done: list[str] = []
        # What was known of the log does not count any more.
        self.is_new = False

    def find_damage(self) -> list[str]:
        found = [what for what, _ in self._small_files()]
        if self.disk.exists(self.mark):
            found.append("an earlier repair was interrupted")
        try:
            self._read(refuses_damage=True)
        except UnknownRecord as error:
            raise RepairFailure(f"{error}; open it with a newer release") from error
        except (DamagedLog, MetadataError) as error:
            found.append(str(error))
        else:
            lost = self.directory.find_data() if is_blank(self.disk, self.path) else None
            if lost is not None:
                found.append(f"{METADATA_PARTITION} is empty, but {lost} has records")
        return found

    def _small_files(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Give what is wrong with quorum-state and the snapshots, and what to do about it."""
        if not self.disk.exists(self.path):
            return
        checks: list[tuple[str, Callable[[], object]]] = [
            (stored.id.file_name, partial(self.snapshots.read, stored.id)) for stored in self.snapshots.list()
        ]
        state = f"{self.path}/{QUORUM_STATE_FILE}"
        if self.disk.exists(state):
            checks.append((QUORUM_STATE_FILE, lambda: decode_quorum_state(self.disk.read_file(state))))
        for name, read in checks:
            path = f"{self.path}/{name}"
            try:
                read()
            except MetadataError as error:
                yield f"{path} is damaged: {error}", partial(self._set_aside, path)

    def _set_aside(self, path: str) -> None:
        kept = keep_copy(self.disk, path)
        self.disk.remove(path)
        self.disk.sync_directory(self.path)
        self.done.append(f"removed {path}; a copy is {kept}")

    # The log

    def run(self) -> None:
        self._check_alone()
        self.disk.write_file_atomically(self.mark, b"")
        make_lasting_directory(self.disk, self.path)
        for what, mend in list(self._small_files()):
            self.done.append(what)
            mend()
        if not self.directory.was_clean:
            self.directory.begin()
        self._make_readable()
        published = PublishedMetadata()
        quorum = self._open(published)
        try:
            self._put_back(quorum, published.image)
        finally:
            quorum.close()
        self._note_stop(quorum)
        self.disk.remove(self.mark)
        self.disk.sync_directory(self.directory.path)

    def _check_alone(self) -> None:
        """Refuse a node that agrees with others on the metadata, before anything is changed.

        The others have what this node has lost. A node that began again by itself would contradict them.
        """
        config = self.config
        asked = max(len(config.controller_quorum_voters), len(config.controller_quorum_bootstrap_servers))
        if not config.is_controller or asked > 1 or self._count_voters() > 1:
            raise self._is_one_of_several()

    def _count_voters(self) -> int:
        """Return how many voters the snapshots name, as far as they can be read."""
        most = 0
        for stored in self.snapshots.list() if self.disk.exists(self.path) else ():
            try:
                most = max(most, len(self.snapshots.read(stored.id).quorum.voters or ()))
            except MetadataError:
                continue
        return most

    def _is_one_of_several(self) -> RepairFailure:
        return RepairFailure(
            f"{self.path} belongs to a quorum of several nodes, and the others have the metadata too: remove "
            "this voter if it is one, format its directory, and let it join again"
        )

    def _make_readable(self) -> None:
        """Change the log until it can be read from the beginning to the end."""
        try:
            self._read(refuses_damage=True)
        except (DamagedLog, MetadataError) as error:
            self.done.append(str(error))
        else:
            return
        self._keep_log()
        damages: Sequence[Damage] = ()
        try:
            damages = self._read(refuses_damage=False)
            self.done += [damage.words for damage in damages]
        except (StorageError, MetadataError) as error:
            self.done.append(f"the metadata after the damage cannot be used: {error}")
        else:
            return
        try:
            self._cut()
            self._read(refuses_damage=False)
        except (StorageError, MetadataError) as error:
            self.done.append(f"the metadata before the damage cannot be used: {error}")
            self._begin_again()

    def _read(self, *, refuses_damage: bool) -> Sequence[Damage]:
        """Read everything. Raises what a start would raise."""
        known = self._known(refuses_damage)
        make_lasting_directory(self.disk, self.path)
        volume = self.directory.volume
        log = open_metadata_log(volume, self.path, self.config, self.snapshots, self.now_ms, known)
        try:
            quorum = load_metadata(log, self.snapshots).quorum
        finally:
            log.close()
        if not quorum.voters and not self.config.controller_quorum_voters:
            raise MetadataError(f"{self.path} does not name its voters")
        return log.damages

    def _known(self, refuses_damage: bool) -> SyncedMetadata:
        if self.is_new:
            return SyncedMetadata(refuses_damage=refuses_damage)
        directory = self.directory
        return SyncedMetadata(
            directory.was_clean,
            directory.find_synced(METADATA_PARTITION),
            directory.find_stopped(METADATA_PARTITION),
            refuses_damage,
        )

    def _keep_log(self) -> None:
        for entry in self.disk.list(self.path):
            found = find_segment_file(entry.name)
            if found is not None and found.kind is FileKind.LOG and entry.size:
                path = f"{self.path}/{entry.name}"
                self.done.append(f"a copy of {path} is {keep_copy(self.disk, path)}")

    def _cut(self) -> None:
        """Cut the log before the first record that does not fit."""
        known = self._known(refuses_damage=False)
        volume = self.directory.volume
        log = open_metadata_log(volume, self.path, self.config, self.snapshots, self.now_ms, known)
        low, high = self._newest_snapshot_end(), int(log.log_end_offset)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits_up_to(middle):
                low = middle
            else:
                high = middle - 1
        deletions = log.truncate_to(Offset(low), self.now_ms)
        for deletion in deletions:
            deletion.run(self.disk)
        log.close()
        self.done.append(f"cut {METADATA_PARTITION} at offset {log.log_end_offset}")

    def _newest_snapshot_end(self) -> int:
        stored = self.snapshots.list()
        return stored[-1].id.end_offset if stored else 0

    def _fits_up_to(self, offset: int) -> bool:
        try:
            read_image(self.disk, self.path, offset)
        except MetadataError:
            return False
        return True

    def _begin_again(self) -> None:
        """Take everything aside, and begin as formatting does."""
        self.is_new = True
        for entry in self.disk.list(self.path):
            if not entry.name.endswith(SUFFIX):
                path = f"{self.path}/{entry.name}"
                keep_copy(self.disk, path)
                self.disk.remove(path)
        self.disk.sync_directory(self.path)
        self._check_bootstrap()
        directory_id = self.directory.meta.directory_id
        assert directory_id is not None, "directories without ids are of the ZooKeeper age"
        only = voter(self.config.node_id, directory_id, [controller_endpoint(self.config)])
        write_voters(self.disk, self.directory.path, [only], self.now_ms)
        self.done.append(
            f"the metadata starts again; copies of the old files are in {self.path}, with names that end in "
            f"{SUFFIX}"
        )

    def _check_bootstrap(self) -> None:
        """Do without the first records that formatting chose, if they cannot be read."""
        path = f"{self.directory.path}/{BOOTSTRAP_FILE}"
        try:
            if self.disk.exists(path):
                decode_snapshot(self.disk.read_file(path), path)
        except MetadataError as error:
            self.done.append(str(error))
            self._set_aside(path)

    def _open(self, published: PublishedMetadata) -> MetadataQuorum:
        directory, config = self.directory, self.config
        assert directory.meta.directory_id is not None, "directories without ids are of the ZooKeeper age"
        settings = QuorumSettings(
            ControllerSettings(config.node_id, directory.meta.cluster_id or "", self.configs.layers.static),
            VoterIdentity(config.node_id, directory.meta.directory_id, controller_endpoint(config)),
            config,
        )
        world = QuorumWorld(
            directory.volume,
            SystemClock(),
            _call_never,
            random.SystemRandom(),
            _raise,
            known=self._known(refuses_damage=False),
        )
        quorum = MetadataQuorum(settings, published, world)
        try:
            quorum.start()
            if not quorum.driver.replica.is_only_voter:
                raise self._is_one_of_several()
            quorum.flush()
        except (StorageError, MetadataError) as error:
            raise RepairFailure(f"{error}: restore {self.path} from a backup") from error
        return quorum

    def _note_stop(self, quorum: MetadataQuorum) -> None:
        """Let the next start know what the log is now."""
        directory = self.directory
        if directory.was_clean:
            states = stopped_files.read(self.disk, directory.path, directory.clean_stop_epoch)
            states[METADATA_DIRECTORY] = stopped_files.state_of(quorum.driver.log)
            stopped_files.write(self.disk, directory.path, directory.clean_stop_epoch, states)

    # Topics

    def _put_back(self, quorum: MetadataQuorum, image: MetadataImage) -> None:
        assert quorum.controller is not None, "the only voter leads"
        lost, last_producer_id = self._look_through(image)
        records: list[Any] = []
        topics = {one.topic_id: one.partition.topic for one in lost}
        for topic_id, name in topics.items():
            known = image.topics.find(name)
            if known is not None and known.id != topic_id:
                self.done.append(f"{name} exists with another id, so an older topic of that name is skipped")
                lost = [one for one in lost if one.topic_id != topic_id]
                continue
            if known is None:
                records.append(TopicRecord(name=name, topic_id=topic_id))
            numbers = sorted(one.partition.partition for one in lost if one.topic_id == topic_id)
            self.done.append(
                f"restored {name} with partitions {', '.join(map(str, numbers))}; its configs are reset to "
                "the defaults, so set them again"
            )
        records += [self._partition_record(one) for one in lost]
        if last_producer_id >= 0 or image.next_producer_id >= 0:
            next_id = max(image.next_producer_id, last_producer_id + 1) + _PRODUCER_IDS_MARGIN
            records.append(ProducerIdsRecord(broker_id=self.config.node_id, next_producer_id=next_id))
        for start in range(0, len(records), _RECORDS_MAX):
            quorum.controller.append(records[start : start + _RECORDS_MAX])
            quorum.flush()

    def _partition_record(self, one: _LostPartition) -> PartitionRecord:
        me = (self.config.node_id,)
        return PartitionRecord(
            partition_id=one.partition.partition,
            topic_id=one.topic_id,
            replicas=me,
            isr=me,
            removing_replicas=(),
            adding_replicas=(),
            # Who led last is let lead again, even if the node did not stop cleanly.
            leader=self.config.node_id,
            leader_epoch=one.leader_epoch,
            partition_epoch=0,
            directories=(one.directory_id,),
        )

    def _look_through(self, image: MetadataImage) -> tuple[list[_LostPartition], int]:
        """Return the partitions that the metadata does not know, and the largest id of a producer."""
        lost: list[_LostPartition] = []
        last_producer_id = -1
        for path in data_directories(self.config):
            directory_id = self._directory_id(path)
            for entry in self.disk.list(path) if self.disk.exists(path) and directory_id else ():
                if not entry.is_directory:
                    continue
                try:
                    name = parse_directory_name(entry.name)
                except CorruptFile:
                    continue
                if name.state is not DirectoryState.CURRENT or name.partition == METADATA_PARTITION:
                    continue
                where = f"{path}/{entry.name}"
                last_producer_id = max(last_producer_id, self._last_producer_id(where))
                topic_id = read_topic_id(self.disk, where)
                if topic_id is None or directory_id is None:
                    self.done.append(f"{where} has no topic id, so it is skipped")
                    continue
                topic = image.topics.find_by_id(topic_id)
                if topic is None or name.partition.partition not in topic.partitions:
                    epoch = self._last_epoch(where) + 1
                    lost.append(_LostPartition(name.partition, topic_id, epoch, directory_id))
        return lost, last_producer_id

    def _directory_id(self, path: str) -> Uuid | None:
        try:
            return decode_meta_properties(self.disk.read_file(f"{path}/{META_PROPERTIES_FILE}")).directory_id
        except (CorruptFile, DiskError):
            return None

    def _last_epoch(self, path: str) -> int:
        try:
            entries = decode_epoch_checkpoint(self.disk.read_file(f"{path}/{LEADER_EPOCH_FILE}"))
        except (CorruptFile, DiskError):
            return 0
        return max([entry.epoch for entry in entries], default=0)

    def _last_producer_id(self, path: str) -> int:
        last = -1
        for entry in self.disk.list(path):
            found = find_segment_file(entry.name)
            if found is not None and found.kind is FileKind.PRODUCER_SNAPSHOT:
                try:
                    content = self.disk.read_file(f"{path}/{entry.name}")
                    last = max([last, *[one.producer_id for one in decode_producer_snapshot(content)]])
                except (CorruptFile, DiskError):
                    continue
        return last
