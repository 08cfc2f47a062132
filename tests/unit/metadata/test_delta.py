"""Replay: every kind of record, and what it does to an image."""

from typing import Any

import pytest
from tests.support.deciding import registration

from ottla.metadata.changes import Changes
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE, ConfigResource, MetadataImage, Position, ScramKey
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.wire.declare import replace
from ottla.wire.metadata_records.access_control import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from ottla.wire.metadata_records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.delegation_tokens import DelegationTokenRecord, RemoveDelegationTokenRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.framing import METADATA_RECORDS
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord
from ottla.wire.metadata_records.quotas import ClientQuotaRecord, EntityData
from ottla.wire.metadata_records.scram import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord
from ottla.wire.metadata_records.zk_migration import ZkMigrationStateRecord

ID = Uuid(b"an-id-0000000001")


def replayed(*records: Any, image: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(Position(Offset(image.offset + len(records)), 1, 0))


def config(name: str, value: str | None, resource: str = "t") -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name=resource, name=name, value=value)


def quota(key: str, value: float = 1.0, *, remove: bool = False) -> ClientQuotaRecord:
    parts = (
        EntityData(entity_type="user", entity_name="u"),
        EntityData(entity_type="client-id", entity_name=None),
    )
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)


def test_every_record_that_changes_metadata_can_be_replayed() -> None:
    transactions = {BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord}
    from ottla.metadata import delta

    assert set(delta._REPLAY) == set(METADATA_RECORDS) - transactions


def test_a_record_of_a_transaction_is_not_for_a_delta() -> None:
    with pytest.raises(MetadataError, match="BeginTransactionRecord"):
        MetadataDelta(EMPTY_IMAGE).replay(BeginTransactionRecord())


def test_records_that_say_nothing_change_nothing() -> None:
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay(NoOpRecord())
    delta.replay(ZkMigrationStateRecord(zk_migration_state=0))
    assert not delta
    assert delta.apply(EMPTY_IMAGE.position) == EMPTY_IMAGE


def test_level_zero_removes_a_feature() -> None:
    image = replayed(
        FeatureLevelRecord(name="a", feature_level=2), FeatureLevelRecord(name="b", feature_level=1)
    )
    assert image.features == {"a": 2, "b": 1}
    assert replayed(FeatureLevelRecord(name="a", feature_level=0), image=image).features == {"b": 1}


def test_configs_are_set_and_removed_one_by_one() -> None:
    image = replayed(config("a", "1"), config("b", "2"), config("a", "3"))
    assert image.topic_config("t") == {"a": "3", "b": "2"}
    image = replayed(config("a", None), config("c", None), image=image)
    assert image.topic_config("t") == {"b": "2"}
    image = replayed(config("b", None), image=image)
    assert ConfigResource(2, "t") not in image.configs


def test_configs_of_a_topic_go_with_it() -> None:
    image = replayed(TopicRecord(name="t", topic_id=ID), config("a", "1"), config("a", "1", "other"))
    image = replayed(RemoveTopicRecord(topic_id=ID), image=image)
    assert image.topic_config("t") == {}
    assert image.topic_config("other") == {"a": "1"}


def test_quotas_are_kept_by_entity_whatever_the_order_of_its_parts() -> None:
    image = replayed(quota("a"), quota("b", 2.0))
    swapped = replace(quota("a", 3.0), entity=quota("a").entity[::-1])
    image = replayed(swapped, image=image)
    assert dict(image.quotas) == {(("client-id", None), ("user", "u")): {"a": 3.0, "b": 2.0}}
    assert replayed(quota("a", remove=True), quota("b", remove=True), image=image).quotas == {}


def test_a_broker_is_fenced_unfenced_and_unregistered() -> None:
    broker = registration(1, fenced=True)
    image = replayed(broker)
    image = replayed(UnfenceBrokerRecord(id=1, epoch=broker.broker_epoch), image=image)
    assert not image.brokers[1].fenced
    image = replayed(FenceBrokerRecord(id=1, epoch=broker.broker_epoch), image=image)
    assert image.brokers[1].fenced
    image = replayed(UnregisterBrokerRecord(broker_id=1, broker_epoch=broker.broker_epoch), image=image)
    assert image.brokers == {}


def test_a_change_of_a_broker_leaves_the_rest_of_it() -> None:
    broker = registration(1)
    epoch = broker.broker_epoch
    image = replayed(
        broker,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, cordoned_log_dirs=()),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1),
    )
    assert image.brokers[1] == replace(broker, in_controlled_shutdown=True, cordoned_log_dirs=(), fenced=True)


@pytest.mark.parametrize(
    "record",
    [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1),
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5, fenced=1),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=3),
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, in_controlled_shutdown=-1),
        FenceBrokerRecord(id=1, epoch=5),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=5),
        RemoveAccessControlEntryRecord(id=ID),
        RemoveTopicRecord(topic_id=ID),
    ],
    ids=repr,
)
def test_what_no_controller_could_have_written_is_refused(record: Any) -> None:
    with pytest.raises(MetadataError):
        replayed(record, image=replayed(registration(1)))


def test_producer_ids_credentials_rules_and_tokens_are_kept_and_removed() -> None:
    rule = AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*",
        operation=3, permission_type=3,
    )  # fmt: skip
    credential = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    token = DelegationTokenRecord(
        owner="User:a", requester="User:a", renewers=(), issue_timestamp=1, max_timestamp=2,
        expiration_timestamp=2, token_id="t",
    )  # fmt: skip
    ids = ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000)
    image = replayed(rule, credential, token, ids)
    assert image.acls == {ID: rule}
    assert image.scram == {ScramKey(1, "a"): credential}
    assert image.tokens == {"t": token}
    assert image.next_producer_id == 1000
    image = replayed(
        RemoveAccessControlEntryRecord(id=ID),
        RemoveUserScramCredentialRecord(name="a", mechanism=1),
        RemoveDelegationTokenRecord(token_id="t"),
        image=image,
    )
    assert (image.acls, image.scram, image.tokens) == ({}, {}, {})


def test_an_image_shares_the_parts_that_did_not_change() -> None:
    before = replayed(registration(1), config("a", "1"))
    after = replayed(config("a", "2"), image=before)
    assert after.brokers is before.brokers
    assert after.topics is before.topics
    assert after.configs is not before.configs
    assert before.topic_config("t") == {"a": "1"}


def test_changes_of_a_mapping_give_the_newest_value() -> None:
    changes: Changes[str, int] = Changes({"a": 1, "b": 2})
    changes.put("a", 3)
    changes.remove("b")
    changes.remove("c")
    assert (changes.find("a"), changes.find("b"), changes.find("d")) == (3, None, None)
    assert changes.apply() == {"a": 3}
    assert changes.base == {"a": 1, "b": 2}
