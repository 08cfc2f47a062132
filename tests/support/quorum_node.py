"""A quorum of one on any disk, with a broker that has come up, as tests need it."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId, Offset
from ottla.quorum.controller.active_controller import ActiveController
from ottla.quorum.controller.decision import Caller
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, NewCluster, format_directories, is_formatted
from ottla.quorum.metadata_quorum import MetadataQuorum, QuorumSettings, QuorumWorld
from ottla.quorum.raft_driver import RaftDriver
from ottla.quorum.random_id import random_id
from ottla.quorum.voters import Endpoint, VoterIdentity, voter
from ottla.storage.log import Log
from ottla.storage.log_dirs.meta_properties import FILE as META_PROPERTIES
from ottla.storage.log_dirs.meta_properties import decode_meta_properties
from ottla.storage.syncing.syncs import Waiter
from ottla.storage.volume import Volume
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import broker_registration, controller_registration
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.world.disk import Disk

STATIC = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
START_MS = 1_800_000_000_000


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return 1_000_000 * self.now


class SyncsNothing:
    """Leaves the log to `flush`."""

    def request(self, log: Log, offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Do nothing."""

    def forget(self, log: Log) -> list[Waiter]:
        """Nobody waits."""
        return []


class NeverCalled:
    """A timer that is not to come: the tests say when something is due."""

    def __init__(self, _delay_ms: int, _callback: Callable[[], None]) -> None:
        pass

    def cancel(self) -> None:
        """Do nothing."""


class QuorumNode:
    """Opens, and formats if need be, the directory `path` of `disk`."""

    def __init__(
        self,
        disk: Disk,
        path: str = "/data",
        *,
        seed: int = 0,
        configs: Mapping[str, str] | None = None,
        node_id: int = 1,
        port: int = 9092,
        starts: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock(START_MS)
        self.port = port
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", port + 1)
        if not is_formatted(disk, path):
            directory_id = random_id(self.random)
            voters = [voter(node_id, directory_id, [endpoint])]
            cluster = NewCluster(str(random_id(self.random)), NodeId(node_id), directory_id, voters)
            format_directories(disk, [path], cluster, self.random, self.now_ms)
        meta = decode_meta_properties(disk.read_file(f"{path}/{META_PROPERTIES}"))
        assert meta.node_id is not None
        assert meta.cluster_id is not None
        assert meta.directory_id is not None
        self.node_id, self.cluster_id, self.directory_id = meta.node_id, meta.cluster_id, meta.directory_id
        static = {**STATIC, "node.id": str(self.node_id), "log.dirs": path, **(configs or {})}
        self.published = PublishedMetadata()
        self.metadata_path = f"{path}/{METADATA_DIRECTORY}"
        self.given_up: list[Exception] = []
        self.quorum = MetadataQuorum(
            QuorumSettings(
                ControllerSettings(self.node_id, self.cluster_id, static),
                VoterIdentity(self.node_id, self.directory_id, endpoint),
                EffectiveConfigs(static).node,
            ),
            self.published,
            QuorumWorld(
                Volume(disk, path, syncs=SyncsNothing()),
                self.clock,
                NeverCalled,
                self.random,
                self.given_up.append,
            ),
        )
        if starts:
            self.quorum.start()
            self.quorum.flush()

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.clock.now

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self.clock.now = now_ms

    @property
    def driver(self) -> RaftDriver:
        """The node's replica of the quorum."""
        return self.quorum.driver

    @property
    def controller(self) -> ActiveController:
        """The active controller."""
        assert self.quorum.controller is not None, "the node leads"
        return self.quorum.controller

    @property
    def image(self) -> MetadataImage:
        """What is committed."""
        return self.published.image

    def ask(self, ask: Any, caller: Caller | None = None) -> Any:
        """Decide, commit at once and return the answer."""
        answers: list[Any] = []
        self.quorum.ask(ask, caller, answers.append)
        self.quorum.flush()
        (answer,) = answers
        return answer

    def tick(self, now_ms: int) -> int:
        """Let it be `now_ms`, and do what is due."""
        self.now_ms = now_ms
        return self.quorum.tick()

    def write_snapshot(self) -> None:
        """Write a snapshot of what is published, at once."""
        writer = self.quorum.snapshot_writer
        writer.begin(self.now_ms)
        while writer.is_writing:
            writer.tick(self.now_ms)

    def come_up(self, previous_broker_epoch: int = -1) -> int:
        """Register controller and broker, and unfence the broker. Returns its epoch."""
        incarnation_id = random_id(self.random)
        levels = [(name, one.min, one.max) for name, one in SUPPORTED.items()]
        self.ask(
            controller_registration.ControllerRegistrationRequest(
                controller_id=self.node_id,
                incarnation_id=incarnation_id,
                zk_migration_ready=False,
                listeners=(
                    controller_registration.Listener(
                        name="CONTROLLER", host="127.0.0.1", port=self.port + 1, security_protocol=0
                    ),
                ),
                features=tuple(
                    controller_registration.Feature(
                        name=name, min_supported_version=lowest, max_supported_version=highest
                    )
                    for name, lowest, highest in levels
                ),
            ),
        )
        answer = self.ask(
            broker_registration.BrokerRegistrationRequest(
                broker_id=self.node_id,
                cluster_id=self.cluster_id,
                incarnation_id=incarnation_id,
                listeners=(
                    broker_registration.Listener(
                        name="PLAINTEXT", host="127.0.0.1", port=self.port, security_protocol=0
                    ),
                ),
                features=tuple(
                    broker_registration.Feature(
                        name=name, min_supported_version=lowest, max_supported_version=highest
                    )
                    for name, lowest, highest in levels
                ),
                rack=None,
                log_dirs=(self.directory_id,),
                previous_broker_epoch=previous_broker_epoch,
            ),
        )
        assert answer.error_code is ErrorCode.NONE, answer.error_code
        self.heartbeat()
        return int(answer.broker_epoch)

    def heartbeat(self, **wishes: Any) -> bool:
        """Send a heartbeat of the broker. Returns whether it may stop."""
        fields: dict[str, Any] = {
            "broker_id": self.node_id,
            "broker_epoch": self.image.brokers[self.node_id].broker_epoch,
            "current_metadata_offset": self.image.offset,
            "want_fence": False,
            "want_shut_down": False,
            "cordoned_log_dirs": (),
        }
        answer = self.ask(BrokerHeartbeatRequest(**{**fields, **wishes}))
        return bool(answer.should_shut_down)

    def stop(self) -> None:
        """Take the broker out of the cluster and close the log."""
        while not self.heartbeat(want_shut_down=True):
            pass
        self.quorum.close()

    def create(self, *topics: CreatableTopic) -> list[ErrorCode]:
        """Create topics."""
        reply = self.ask(CreateTopicsRequest(topics=topics))
        return [topic.error_code for topic in reply.topics]
