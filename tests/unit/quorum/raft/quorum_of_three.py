"""A replica of a quorum of three on a simulated disk, to be asked things."""

from random import Random
from typing import Any

from ottla.model.ids import Offset
from ottla.model.uuid import METADATA_TOPIC_ID, Uuid
from ottla.quorum.format import METADATA_DIRECTORY, make_lasting_directory
from ottla.quorum.raft import messages
from ottla.quorum.raft.effects import Effect, Inbound, Reply, Send, SyncLog
from ottla.quorum.raft.metadata_log import MetadataLog, OffsetAndEpoch, QuorumStateFile
from ottla.quorum.raft.replica import Replica
from ottla.quorum.raft.settings import Moment, RaftSettings
from ottla.quorum.raft.snapshot_files import SnapshotFiles
from ottla.quorum.raft.voter_sets import ReplicaKey, VoterSet, static_voter
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, encode_snapshot
from ottla.quorum.voters import DYNAMIC, Endpoint, VoterHistory, voter
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log_dirs import partition_metadata
from ottla.storage.names import METADATA_PARTITION
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.wire.error_code import ErrorCode

CLUSTER_ID = "cluster"
LISTENER = "CONTROLLER"
PATH = f"/logs/{METADATA_DIRECTORY}"


def directory(node_id: int) -> Uuid:
    return Uuid(bytes([node_id] * 16))


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, "localhost", 9000 + node_id)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def altered(message: Any, **fields: Any) -> Any:
    """Return a message with other values in some of its fields."""
    kind = type(message)
    return kind(**{name: getattr(message, name) for name in kind.__annotations__} | fields)


class Peer:
    """Node 1, and a clock that goes when it is told to."""

    def __init__(
        self, voters: tuple[int, ...] = (1, 2, 3), *, is_dynamic: bool = True, **changed: Any
    ) -> None:
        self.disk = SimulatedDisk()
        self.now_ms = 1000
        self.effects: list[Effect] = []
        static = VoterSet.of([static_voter(one, endpoint(one)) for one in voters])
        self.settings = RaftSettings(
            CLUSTER_ID,
            key(1),
            (endpoint(1),),
            LISTENER,
            bootstrap_servers=tuple([endpoint(one)[1:] for one in voters]) if is_dynamic else (),
            static_voters=VoterSet() if is_dynamic else static,
        )._replace(**changed)
        make_lasting_directory(self.disk, PATH)
        content = partition_metadata.encode_partition_metadata(METADATA_TOPIC_ID)
        self.disk.write_file_atomically(f"{PATH}/{partition_metadata.FILE}", content)
        if is_dynamic:
            described = VoterSet.of([voter(one, directory(one), [endpoint(one)]) for one in voters])
            quorum = VoterHistory(DYNAMIC, described.voters)
            snapshot = b"".join(encode_snapshot((), 0, 0, 0, quorum, 0))
            self.disk.write_file_atomically(f"{PATH}/{FORMAT_SNAPSHOT.file_name}", snapshot)
        self.start()

    def start(self) -> None:
        """Start, or start again on the same disk."""
        snapshots = SnapshotFiles(self.disk, PATH)
        request = LoadRequest(PATH, METADATA_PARTITION, LogConfig(is_deleted=False), now_ms=self.now_ms)
        log = MetadataLog(load_log(Volume(self.disk, "/logs"), request), snapshots)
        self.replica = Replica(self.settings, log, QuorumStateFile(self.disk, PATH), Random(1))
        self.replica.load(self.now.wall_ms)
        self.take(self.replica.start(self.now))

    @property
    def state(self) -> Any:
        return self.replica.state

    def is_a(self, *kinds: type[Any]) -> bool:
        """Say in which state the replica is."""
        return isinstance(self.replica.state, kinds)

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def take(self, effects: list[Effect]) -> list[Effect]:
        self.effects = effects
        return effects

    def ask(self, request: Any, version: int = 99) -> Any:
        """Send a request. Returns the answer, or None if it waits."""
        newest = {"FetchRequest": 18, "VoteRequest": 2}.get(type(request).__name__, 1)
        token = object()
        self.take(self.replica.receive(Inbound(token, request, min(version, newest)), self.now))
        return next(
            (one.response for one in self.effects if isinstance(one, Reply) and one.token is token), None
        )

    def wait(self, ms: int) -> list[Effect]:
        """Let time pass."""
        self.now_ms += ms
        return self.take(self.replica.poll(self.now))

    def sync(self) -> list[Effect]:
        """Sync the log, as the node would when asked to."""
        self.replica.log.log.flush()
        return self.take(self.replica.synced(self.now))

    def sent(self, kind: type[Any]) -> list[Send]:
        return [one for one in self.effects if isinstance(one, Send) and isinstance(one.request, kind)]

    def answer(self, send: Send, response: Any) -> list[Effect]:
        return self.take(self.replica.receive_response(send.correlation_id, response, self.now))

    def lead(self) -> int:
        """Be elected by node 2. Returns the epoch."""
        self.wait(2000)
        for _ in ("pre-vote", "vote"):
            (send,) = [one for one in self.vote_requests() if one.destination.node_id == 2]
            info = messages.LeaderInfo(-1, self.replica.epoch)
            self.answer(send, messages.vote_response(info, 2, ErrorCode.NONE, is_granted=True))
        return self.replica.epoch

    def vote_requests(self) -> list[Send]:
        return [one for one in self.effects if isinstance(one, Send) and hasattr(one.request, "voter_id")]

    def commit(self) -> None:
        """Have node 2 fetch everything, so that all of it is committed."""
        self.sync()
        self.ask(self.fetch(2))

    def fetch(self, node_id: int, offset: int | None = None, epoch: int | None = None, **changed: Any) -> Any:
        """Return a fetch of another replica, of all there is unless told otherwise."""
        end = self.replica.log.end
        at = OffsetAndEpoch(
            end.offset if offset is None else Offset(offset), end.epoch if epoch is None else epoch
        )
        settings = self.settings._replace(me=key(node_id))
        return messages.fetch_request(settings, changed.get("current", self.replica.epoch), at, None)

    def append(self, payload: bytes = b"x") -> int:
        batch = build_batch([Record(0, 0, None, payload)], base_offset=0, leader_epoch=self.replica.epoch)
        offset, effects = self.replica.append(batch, self.replica.epoch, self.now)
        self.take(effects)
        assert any(isinstance(one, SyncLog) for one in effects)
        return offset
