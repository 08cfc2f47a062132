"""A controller without a log: decisions are made on an image, and their records replayed at once."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import METADATA_VERSION, SUPPORTED, default_levels
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage, Position
from ottla.metadata.topics import Topic
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.sessions import BrokerSessions
from ottla.quorum.controller.deciders import find_decider
from ottla.quorum.controller.decision import ControllerView, Decide, Randomness
from ottla.quorum.controller.settings import ControllerSettings
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.metadata_records.brokers import BrokerFeature, RegisterBrokerRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.partitions import PartitionRecord

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

CLUSTER_ID = "test-cluster"
SESSION_TIMEOUT_MS = 9_000
STATIC = {"process.roles": "broker,controller", "node.id": "0", "controller.listener.names": "CONTROLLER"}


def directory_of(broker_id: int, number: int = 0) -> Uuid:
    """Return the id of one of a broker's directories."""
    return Uuid(bytes((1, broker_id, number)) + bytes(13))


def registration(broker_id: int, *, directories: int = 1, **changes: Any) -> RegisterBrokerRecord:
    """Return the registration of a broker that is up."""
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "incarnation_id": Uuid(bytes((2, broker_id)) + bytes(14)),
        "broker_epoch": 100 + broker_id,
        "endpoints": (),
        "features": tuple(
            BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in SUPPORTED.items()
        ),
        "rack": None,
        "fenced": False,
        "log_dirs": tuple(directory_of(broker_id, number) for number in range(directories)),
    }
    return RegisterBrokerRecord(**{**fields, **changes})


class DecidingController:
    """Decides, replays, and remembers the records of the last decision."""

    def __init__(
        self,
        brokers: Sequence[RegisterBrokerRecord] = (registration(0),),
        features: Mapping[str, int] = default_levels(),
        configs: Mapping[str, str] | None = None,
    ) -> None:
        self.static = {**STATIC, **(configs or {})}
        self.image = EMPTY_IMAGE
        self.records: Sequence[Any] = ()
        self.random: Randomness = random.Random(7)
        self.monotonic_ms = 0
        self.sessions = BrokerSessions(SESSION_TIMEOUT_MS)
        levels = [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.items()]
        self.replay(*levels, *brokers)

    @property
    def view(self) -> ControllerView:
        """What a decision made now would see."""
        image = self.image
        configs = EffectiveConfigs(self.static, image.default_broker_config(), image.broker_config(0))
        settings = ControllerSettings(0, CLUSTER_ID, self.static)
        return ControllerView(
            image,
            Offset(image.offset + 1),
            1_000,
            settings,
            configs,
            self.random,
            kraft_version=1,
            sessions=self.sessions,
            monotonic_ms=self.monotonic_ms,
        )

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version."""
        return self.image.features[METADATA_VERSION]

    def replay(self, *records: Any) -> MetadataImage:
        """Replay records that nobody decided."""
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        last_offset = Offset(self.image.offset + len(records))
        self.sessions.follow(self.image.brokers, records, last_offset)
        self.image = delta.apply(Position(last_offset, 1, 0))
        return self.image

    def ask(self, decide: Decide[Ask, Reply], ask: Ask) -> Reply:
        """Decide, replay the records and return the reply."""
        decision = decide(self.view, ask)
        self.records = decision.records
        self.replay(*decision.records)
        note = find_decider(type(ask)).note
        if note is not None:
            note(self.sessions, ask, decision.reply, self.monotonic_ms)
        return decision.reply

    def topic(self, name: str) -> Topic:
        """Return a topic that exists."""
        topic = self.image.topics.find(name)
        assert topic is not None, f"{name} exists"
        return topic

    def partition(self, name: str, number: int = 0) -> PartitionRecord:
        """Return a partition that exists."""
        return self.topic(name).partitions[number]

    def create(self, *topics: CreatableTopic) -> tuple[CreatableTopicResult, ...]:
        """Create topics, and return what became of each."""
        from ottla.quorum.controller.topics.new_topics import decide_create_topics

        return self.ask(decide_create_topics, CreateTopicsRequest(topics=topics)).topics

    def have(self, name: str, *replicas: tuple[int, ...], **configs: str) -> Topic:
        """Have a topic with partitions on these brokers. Configs are given with underscores for dots."""
        (result,) = self.create(new_topic(name, assignments=replicas, configs=_dotted(configs)))
        assert result.error_code is ErrorCode.NONE, result.error_message
        return self.topic(name)


def new_topic(
    name: str,
    partitions: int = -1,
    replication_factor: int = -1,
    assignments: Sequence[tuple[int, ...]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """Describe a topic to create."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in enumerate(assignments)
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )


def _dotted(configs: Mapping[str, str]) -> dict[str, str | None]:
    return {name.replace("_", "."): value for name, value in configs.items()}
