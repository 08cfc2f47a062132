"""A quorum of one on any disk, with a broker that has come up, as tests need it."""

import random
from collections.abc import Mapping
from typing import Any, TypeVar

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import NodeId
from ottla.quorum.controller.decision import Decide
from ottla.quorum.controller.heartbeat import decide_heartbeat
from ottla.quorum.controller.registration import decide_register_broker, decide_register_controller
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.format import METADATA_DIRECTORY, NewCluster, format_directories, is_formatted
from ottla.quorum.random_id import random_id
from ottla.quorum.standalone import Standalone, StandaloneSettings, open_standalone
from ottla.quorum.voters import Endpoint, VoterIdentity
from ottla.storage.meta_properties import FILE as META_PROPERTIES
from ottla.storage.meta_properties import decode_meta_properties
from ottla.storage.volume import Volume
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import broker_registration, controller_registration
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.world.disk import Disk

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

STATIC = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
START_MS = 1_800_000_000_000


class StandaloneNode:
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
        static_voters: tuple[int, ...] = (),
    ) -> None:
        self.random = random.Random(seed)
        self.now_ms = START_MS
        self.port = port
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", port + 1)
        if not is_formatted(disk, path):
            cluster = NewCluster(str(random_id(self.random)), NodeId(node_id), endpoint)
            format_directories(disk, [path], cluster, self.random, self.now_ms)
        meta = decode_meta_properties(disk.read_file(f"{path}/{META_PROPERTIES}"))
        assert meta.node_id is not None
        assert meta.cluster_id is not None
        assert meta.directory_id is not None
        self.node_id, self.cluster_id, self.directory_id = meta.node_id, meta.cluster_id, meta.directory_id
        static = {**STATIC, "node.id": str(self.node_id), "log.dirs": path, **(configs or {})}
        self.published = PublishedMetadata()
        self.metadata_path = f"{path}/{METADATA_DIRECTORY}"
        self.standalone: Standalone = open_standalone(
            Volume(disk, path),
            StandaloneSettings(
                ControllerSettings(self.node_id, self.cluster_id, static),
                VoterIdentity(self.node_id, self.directory_id, endpoint),
                EffectiveConfigs(static).node,
                static_voters,
            ),
            self.published,
            self.random,
            self.now_ms,
        )

    @property
    def image(self) -> MetadataImage:
        """What is committed."""
        return self.published.image

    def ask(self, decide: Decide[Ask, Reply], ask: Ask) -> Reply:
        """Decide, commit at once and return the answer."""
        answers: list[Reply] = []
        self.standalone.controller.handle(decide, ask, self.now_ms, answers.append)
        self.standalone.voter.flush()
        (answer,) = answers
        return answer

    def come_up(self, previous_broker_epoch: int = -1) -> int:
        """Register controller and broker, and unfence the broker. Returns its epoch."""
        incarnation_id = random_id(self.random)
        levels = [(name, one.min, one.max) for name, one in SUPPORTED.items()]
        self.ask(
            decide_register_controller,
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
            decide_register_broker,
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
        return answer.broker_epoch

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
        return self.ask(decide_heartbeat, BrokerHeartbeatRequest(**{**fields, **wishes})).should_shut_down

    def stop(self) -> None:
        """Take the broker out of the cluster and close the log."""
        while not self.heartbeat(want_shut_down=True):
            pass
        self.standalone.close()

    def create(self, *topics: CreatableTopic) -> list[ErrorCode]:
        """Create topics."""
        from ottla.quorum.controller.new_topics import decide_create_topics

        reply = self.ask(decide_create_topics, CreateTopicsRequest(topics=topics))
        return [topic.error_code for topic in reply.topics]
