"""What some records of the metadata log change in an image.

`replay` takes the records one by one and is the only thing that changes metadata, while a controller serves
and while a log is loaded alike. `apply` makes the new image. Parts that keep state of their own that follows
the metadata, such as the logs of a broker's partitions, listens to `published` and finds in the delta what to
do.
"""

from collections.abc import Callable
from typing import Any

from ottla.metadata.changes import Changes
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import ConfigResource, MetadataImage, Position, QuotaEntity, ScramKey
from ottla.metadata.topics import TopicChanges
from ottla.wire.config_kinds import ResourceType
from ottla.wire.declare import replace
from ottla.wire.metadata_records.access_control import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from ottla.wire.metadata_records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.controllers import RegisterControllerRecord
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord, RemoveDelegationTokenRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionChangeRecord, PartitionRecord
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord
from ottla.wire.metadata_records.quotas import ClientQuotaRecord
from ottla.wire.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord
from ottla.wire.metadata_records.zk_migration import ZkMigrationStateRecord


class MetadataDelta:
    """Changes to an image, by subject. Each subject is false when it did not change."""

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.features = Changes(base.features)
        self.brokers = Changes(base.brokers)
        self.controllers = Changes(base.controllers)
        self.topics = TopicChanges(base.topics)
        self.configs = Changes(base.configs)
        self.quotas = Changes(base.quotas)
        self.next_producer_id = base.next_producer_id
        self.acls = Changes(base.acls)
        self.scram = Changes(base.scram)
        self.tokens = Changes(base.tokens)

    def __bool__(self) -> bool:
        """Say whether anything was changed: records that say nothing change nothing."""
        return (
            any((self.features, self.brokers, self.controllers, self.topics, self.configs, self.quotas))
            or any((self.acls, self.scram, self.tokens))
            or self.next_producer_id != self.base.next_producer_id
        )

    def replay(self, record: Any) -> None:
        """Apply one record. Raises `MetadataError` for one that no controller could have written here."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise MetadataError(f"{type(record).__name__} is no record that changes metadata")
        replay(self, record)

    def apply(self, position: Position) -> MetadataImage:
        """Return the image with the changes in it."""
        return MetadataImage(
            position=position,
            features=self.features.apply(),
            brokers=self.brokers.apply(),
            controllers=self.controllers.apply(),
            topics=self.topics.apply(),
            configs=self.configs.apply(),
            quotas=self.quotas.apply(),
            next_producer_id=self.next_producer_id,
            acls=self.acls.apply(),
            scram=self.scram.apply(),
            tokens=self.tokens.apply(),
        )


def quota_entity(parts: dict[str, str | None]) -> QuotaEntity:
    """Return the key under which the quotas of an entity are kept."""
    return tuple(sorted(parts.items()))


def _replay_feature_level(delta: MetadataDelta, record: FeatureLevelRecord) -> None:
    if record.feature_level == 0:
        delta.features.remove(record.name)
    else:
        delta.features.put(record.name, record.feature_level)


def _replay_register_broker(delta: MetadataDelta, record: RegisterBrokerRecord) -> None:
    delta.brokers.put(record.broker_id, record)


def _replay_unregister_broker(delta: MetadataDelta, record: UnregisterBrokerRecord) -> None:
    _broker(delta, record.broker_id, record.broker_epoch)
    delta.brokers.remove(record.broker_id)


def _replay_fence_broker(delta: MetadataDelta, record: FenceBrokerRecord) -> None:
    delta.brokers.put(record.id, replace(_broker(delta, record.id, record.epoch), fenced=True))


def _replay_unfence_broker(delta: MetadataDelta, record: UnfenceBrokerRecord) -> None:
    delta.brokers.put(record.id, replace(_broker(delta, record.id, record.epoch), fenced=False))


def _replay_broker_change(delta: MetadataDelta, record: BrokerRegistrationChangeRecord) -> None:
    broker = _broker(delta, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise MetadataError(f"broker {record.broker_id} cannot be changed by {record}")
    delta.brokers.put(
        record.broker_id,
        replace(
            broker,
            fenced=record.fenced == 1 if record.fenced else broker.fenced,
            in_controlled_shutdown=bool(record.in_controlled_shutdown) or broker.in_controlled_shutdown,
            log_dirs=record.log_dirs or broker.log_dirs,
            cordoned_log_dirs=(
                broker.cordoned_log_dirs if record.cordoned_log_dirs is None else record.cordoned_log_dirs
            ),
        ),
    )


def _broker(delta: MetadataDelta, broker_id: int, epoch: int) -> RegisterBrokerRecord:
    broker = delta.brokers.find(broker_id)
    if broker is None:
        raise MetadataError(f"broker {broker_id}, which is to be changed, is not registered")
    if broker.broker_epoch != epoch:
        raise MetadataError(f"broker {broker_id} has epoch {broker.broker_epoch}, not {epoch}")
    return broker


def _replay_register_controller(delta: MetadataDelta, record: RegisterControllerRecord) -> None:
    delta.controllers.put(record.controller_id, record)


def _replay_topic(delta: MetadataDelta, record: TopicRecord) -> None:
    delta.topics.replay_topic(record)


def _replay_partition(delta: MetadataDelta, record: PartitionRecord) -> None:
    delta.topics.replay_partition(record)


def _replay_partition_change(delta: MetadataDelta, record: PartitionChangeRecord) -> None:
    delta.topics.replay_partition_change(record)


def _replay_clear_elr(delta: MetadataDelta, record: ClearElrRecord) -> None:
    delta.topics.replay_clear_elr(record)


def _replay_remove_topic(delta: MetadataDelta, record: RemoveTopicRecord) -> None:
    # Its configs go with the topic: no record says so.
    resource = ConfigResource(ResourceType.TOPIC, delta.topics.replay_remove_topic(record))
    if delta.configs.find(resource) is not None:
        delta.configs.remove(resource)


def _replay_config(delta: MetadataDelta, record: ConfigRecord) -> None:
    resource = ConfigResource(record.resource_type, record.resource_name)
    configs = dict(delta.configs.find(resource) or {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if configs:
        delta.configs.put(resource, configs)
    else:
        delta.configs.remove(resource)


def _replay_client_quota(delta: MetadataDelta, record: ClientQuotaRecord) -> None:
    entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
    quotas = dict(delta.quotas.find(entity) or {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if quotas:
        delta.quotas.put(entity, quotas)
    else:
        delta.quotas.remove(entity)


def _replay_producer_ids(delta: MetadataDelta, record: ProducerIdsRecord) -> None:
    delta.next_producer_id = record.next_producer_id


def _replay_access_control_entry(delta: MetadataDelta, record: AccessControlEntryRecord) -> None:
    delta.acls.put(record.id, record)


def _replay_remove_access_control_entry(delta: MetadataDelta, record: RemoveAccessControlEntryRecord) -> None:
    if delta.acls.find(record.id) is None:
        raise MetadataError(f"access rule {record.id}, which is to be removed, is not known")
    delta.acls.remove(record.id)


def _replay_scram(delta: MetadataDelta, record: UserScramCredentialRecord) -> None:
    delta.scram.put(ScramKey(record.mechanism, record.name), record)


def _replay_remove_scram(delta: MetadataDelta, record: RemoveUserScramCredentialRecord) -> None:
    delta.scram.remove(ScramKey(record.mechanism, record.name))


def _replay_token(delta: MetadataDelta, record: DelegationTokenRecord) -> None:
    delta.tokens.put(record.token_id, record)


def _replay_remove_token(delta: MetadataDelta, record: RemoveDelegationTokenRecord) -> None:
    delta.tokens.remove(record.token_id)


def _replay_nothing(_delta: MetadataDelta, _record: NoOpRecord | ZkMigrationStateRecord) -> None:
    """The migration from ZooKeeper is over in every cluster we can meet."""


_REPLAY: dict[type[Any], Callable[[MetadataDelta, Any], None]] = {
    RegisterBrokerRecord: _replay_register_broker,
    UnregisterBrokerRecord: _replay_unregister_broker,
    TopicRecord: _replay_topic,
    PartitionRecord: _replay_partition,
    ConfigRecord: _replay_config,
    PartitionChangeRecord: _replay_partition_change,
    FenceBrokerRecord: _replay_fence_broker,
    UnfenceBrokerRecord: _replay_unfence_broker,
    RemoveTopicRecord: _replay_remove_topic,
    DelegationTokenRecord: _replay_token,
    UserScramCredentialRecord: _replay_scram,
    FeatureLevelRecord: _replay_feature_level,
    ClientQuotaRecord: _replay_client_quota,
    ProducerIdsRecord: _replay_producer_ids,
    BrokerRegistrationChangeRecord: _replay_broker_change,
    AccessControlEntryRecord: _replay_access_control_entry,
    RemoveAccessControlEntryRecord: _replay_remove_access_control_entry,
    NoOpRecord: _replay_nothing,
    ZkMigrationStateRecord: _replay_nothing,
    RemoveUserScramCredentialRecord: _replay_remove_scram,
    RemoveDelegationTokenRecord: _replay_remove_token,
    RegisterControllerRecord: _replay_register_controller,
    ClearElrRecord: _replay_clear_elr,
}
"""Every record type but those of metadata transactions, which say when records count, not what they say."""
