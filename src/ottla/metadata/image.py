"""The metadata of the cluster at one offset of the metadata log.

An image never changes. Records change it by way of a `MetadataDelta` (see `delta`), which makes a new image
that shares with the old one whatever the records did not touch. So a request, a snapshot being written or a
cache may hold on to an image as long as it likes, and *is* tells whether a part is still the same:

    if image.topics is not answered_from.topics: ...      # the cached Metadata answer is stale

Most things are kept as the record that would recreate them. The level of kraft.version is not here: it lives
in control records, which the quorum keeps.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.metadata.topics import EMPTY_TOPICS, Topics
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.wire.config_kinds import ResourceType
from ottla.wire.metadata_records.access_control import AccessControlEntryRecord
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.controllers import RegisterControllerRecord
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord
from ottla.wire.metadata_records.scram import UserScramCredentialRecord


class ConfigResource(NamedTuple):
    """Whose config it is. The broker without a name stands for all brokers."""

    type: int
    name: str


class ScramKey(NamedTuple):
    """Whose SCRAM credential it is, and for which mechanism: 1 is SHA-256, 2 is SHA-512."""

    mechanism: int
    user: str


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: pairs of type (`user`, `client-id`, `ip`) and name, sorted. None is the default."""


class Position(NamedTuple):
    """The last record an image contains: where it is in the log, in which epoch and of what time."""

    offset: Offset
    epoch: int
    timestamp_ms: int


class MetadataImage(NamedTuple):
    """The cluster's metadata at one moment."""

    position: Position
    features: Mapping[str, int]
    brokers: Mapping[int, RegisterBrokerRecord]
    controllers: Mapping[int, RegisterControllerRecord]
    topics: Topics
    configs: Mapping[ConfigResource, Mapping[str, str]]
    quotas: Mapping[QuotaEntity, Mapping[str, float]]
    next_producer_id: int
    """The first producer id that no broker was given; -1 before any was."""
    acls: Mapping[Uuid, AccessControlEntryRecord]
    scram: Mapping[ScramKey, UserScramCredentialRecord]
    tokens: Mapping[str, DelegationTokenRecord]

    @property
    def offset(self) -> Offset:
        """The offset of the last record in the image, -1 if there is none."""
        return self.position.offset

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """Return the config overrides of a topic."""
        return self.configs.get(ConfigResource(ResourceType.TOPIC, topic), _NOTHING)

    def broker_config(self, broker_id: int) -> Mapping[str, str]:
        """Return the config overrides of one broker, without those of all brokers."""
        return self.configs.get(ConfigResource(ResourceType.BROKER, str(broker_id)), _NOTHING)

    def default_broker_config(self) -> Mapping[str, str]:
        """Return the config overrides of all brokers."""
        return self.configs.get(DEFAULT_BROKERS, _NOTHING)

    def group_config(self, group: str) -> Mapping[str, str]:
        """Return the config overrides of a group."""
        return self.configs.get(ConfigResource(ResourceType.GROUP, group), _NOTHING)


DEFAULT_BROKERS: Final = ConfigResource(ResourceType.BROKER, "")

_NOTHING: Final[Mapping[str, str]] = {}

EMPTY_IMAGE: Final = MetadataImage(
    position=Position(Offset(-1), -1, -1),
    features={},
    brokers={},
    controllers={},
    topics=EMPTY_TOPICS,
    configs={},
    quotas={},
    next_producer_id=-1,
    acls={},
    scram={},
    tokens={},
)
