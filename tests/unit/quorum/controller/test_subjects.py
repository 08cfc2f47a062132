"""The smaller subjects of the controller. That the answers are Kafka's is tested against a live one."""

import hashlib
import hmac
from typing import Any

import pytest
from tests.support.deciding import DecidingController, registration

from ottla.metadata.features import ELR_VERSION, default_levels
from ottla.metadata.image import ConfigResource, ScramKey
from ottla.metadata.topics import NO_LEADER
from ottla.quorum.controller.configs import decide_alter_configs, decide_incremental_alter_configs
from ottla.quorum.controller.features import decide_update_features
from ottla.quorum.controller.partitions.elections import decide_elect_leaders
from ottla.quorum.controller.producer_ids import OWN_RANGE_START, decide_allocate_producer_ids
from ottla.quorum.controller.quotas import decide_alter_client_quotas, describe_quotas
from ottla.quorum.controller.scram import decide_alter_scram_credentials, describe_scram_credentials
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import alter_client_quotas, alter_configs, incremental_alter_configs
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionChangeRecord
from ottla.wire.metadata_records.producer_ids import ProducerIdsRecord

SET, DELETE = 0, 1
TOPIC, BROKER = 2, 4
PREFERRED, UNCLEAN = 0, 1


def alter(
    controller: DecidingController, kind: int, name: str, *configs: tuple[str, int, str | None]
) -> ErrorCode:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ),
    )
    ask = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return controller.ask(decide_incremental_alter_configs, ask).responses[0].error_code


def test_configs_are_changed_one_by_one() -> None:
    controller = DecidingController()
    controller.have("t", (0,), retention_ms="5")
    assert alter(controller, TOPIC, "t", ("max.message.bytes", SET, "9")) is ErrorCode.NONE
    assert controller.image.topic_config("t") == {"retention.ms": "5", "max.message.bytes": "9"}
    assert alter(controller, TOPIC, "t", ("retention.ms", DELETE, None)) is ErrorCode.NONE
    assert controller.image.topic_config("t") == {"max.message.bytes": "9"}


def test_a_config_that_stays_the_same_is_not_written() -> None:
    controller = DecidingController()
    controller.have("t", (0,), retention_ms="5")
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5")) is ErrorCode.NONE
    assert not controller.records


def test_configs_are_replaced_as_a_whole() -> None:
    controller = DecidingController()
    controller.have("t", (0,), retention_ms="5")
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=(alter_configs.AlterableConfig(name="max.message.bytes", value="9"),),
    )
    ask = alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=False)
    assert controller.ask(decide_alter_configs, ask).responses[0].error_code is ErrorCode.NONE
    assert controller.image.topic_config("t") == {"max.message.bytes": "9"}


def test_another_min_isr_forgets_who_was_eligible() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1), min_insync_replicas="2")
    controller.replay(
        PartitionChangeRecord(
            partition_id=0, topic_id=controller.topic("t").id, isr=(0,), eligible_leader_replicas=(1,)
        )
    )
    alter(controller, TOPIC, "t", ("min.insync.replicas", SET, "1"))
    assert controller.records[-1] == ClearElrRecord(topic_name="t")
    assert controller.partition("t").eligible_leader_replicas is None
    alter(controller, BROKER, "", ("min.insync.replicas", SET, "2"))
    assert controller.records[-1] == ClearElrRecord(topic_name="")


def test_configs_of_what_does_not_exist_are_refused() -> None:
    controller = DecidingController()
    assert alter(controller, TOPIC, "t", ("retention.ms", SET, "5")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(controller, TOPIC, "t", ("no.such", SET, "5")) is ErrorCode.INVALID_CONFIG, "said first"
    assert not controller.records


def test_defaults_of_all_brokers_hold_for_topics() -> None:
    controller = DecidingController()
    controller.have("t", (0,))
    alter(controller, BROKER, "", ("unclean.leader.election.enable", SET, "true"))
    assert ConfigResource(BROKER, "") in controller.image.configs
    assert controller.view.allows_unclean_election("t")


def elect(controller: DecidingController, kind: int, *partitions: int) -> dict[int, ErrorCode]:
    wanted = (TopicPartitions(topic="t", partitions=partitions),) if partitions else None
    ask = ElectLeadersRequest(election_type=kind, topic_partitions=wanted)
    results = controller.ask(decide_elect_leaders, ask).replica_election_results
    return {one.partition_id: one.error_code for result in results for one in result.partition_results}


def led_by(controller: DecidingController, number: int, leader: int, isr: tuple[int, ...]) -> None:
    topic_id = controller.topic("t").id
    controller.replay(PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=leader, isr=isr))


def test_preferred_leaders_get_their_partitions_back() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1), (0, 1), (0, 1))
    led_by(controller, 0, 1, (0, 1))
    led_by(controller, 1, 1, (1,))
    assert elect(controller, PREFERRED, 0, 1, 2, 9) == {
        0: ErrorCode.NONE,
        1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        2: ErrorCode.ELECTION_NOT_NEEDED,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert controller.partition("t", 0).leader == 0


def test_asked_about_all_partitions_only_those_are_told_of_that_needed_it() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1), (0, 1))
    led_by(controller, 0, 1, (0, 1))
    assert elect(controller, PREFERRED) == {0: ErrorCode.NONE}


def test_an_unclean_election_is_for_partitions_without_a_leader() -> None:
    controller = DecidingController([registration(number) for number in range(3)])
    controller.have("t", (0, 1), (0, 2))
    controller.replay(registration(0, fenced=True), registration(2, fenced=True))
    led_by(controller, 0, NO_LEADER, (0,))
    led_by(controller, 1, NO_LEADER, (0,))
    assert elect(controller, UNCLEAN, 0, 1) == {
        0: ErrorCode.NONE,
        1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
    assert (controller.partition("t", 0).leader, controller.partition("t", 0).isr) == (1, (1,))
    assert elect(controller, UNCLEAN, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}


def test_producer_ids_are_given_in_blocks_that_do_not_overlap() -> None:
    controller = DecidingController()
    ask = AllocateProducerIdsRequest(broker_id=0, broker_epoch=controller.image.brokers[0].broker_epoch)
    first = controller.ask(decide_allocate_producer_ids, ask)
    second = controller.ask(decide_allocate_producer_ids, ask)
    assert (first.producer_id_start, first.producer_id_len) == (0, 1000)
    assert second.producer_id_start == 1000
    assert controller.image.next_producer_id == 2000


def test_a_cluster_with_a_mirror_has_producer_ids_that_its_source_does_not_have() -> None:
    controller = DecidingController()
    controller.have("t", (0,))
    assert alter(controller, TOPIC, "t", ("ottla.mirror.source", SET, "berlin")) is ErrorCode.NONE
    first = controller.image.next_producer_id
    assert OWN_RANGE_START <= first < 2**63 - 2**32
    # Once is enough, and it stays after the copy was made writable.
    assert alter(controller, TOPIC, "t", ("ottla.mirror.source", SET, "paris")) is ErrorCode.NONE
    assert alter(controller, TOPIC, "t", ("ottla.mirror.source", DELETE, None)) is ErrorCode.NONE
    ask = AllocateProducerIdsRequest(broker_id=0, broker_epoch=controller.image.brokers[0].broker_epoch)
    assert controller.ask(decide_allocate_producer_ids, ask).producer_id_start == first


def test_producer_ids_are_not_given_to_a_broker_of_another_life() -> None:
    controller = DecidingController()
    ask = AllocateProducerIdsRequest(broker_id=0, broker_epoch=1)
    assert controller.ask(decide_allocate_producer_ids, ask).error_code is ErrorCode.STALE_BROKER_EPOCH


def test_producer_ids_can_run_out() -> None:
    controller = DecidingController()
    epoch = controller.image.brokers[0].broker_epoch
    controller.replay(ProducerIdsRecord(broker_id=0, broker_epoch=epoch, next_producer_id=2**63 - 500))
    ask = AllocateProducerIdsRequest(broker_id=0, broker_epoch=epoch)
    answer = controller.ask(decide_allocate_producer_ids, ask)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not controller.records


def update(controller: DecidingController, *updates: tuple[str, int, int]) -> ErrorCode:
    keys = tuple(
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    )
    return controller.ask(decide_update_features, UpdateFeaturesRequest(feature_updates=keys)).error_code


def test_features_go_up_and_down_together_or_not_at_all() -> None:
    controller = DecidingController()
    assert (
        update(controller, ("group.version", 0, 2), ("share.version", 9, 1))
        is ErrorCode.INVALID_UPDATE_VERSION
    )
    assert controller.image.features["group.version"] == 1
    assert update(controller, ("group.version", 0, 2), ("share.version", 0, 2)) is ErrorCode.NONE
    assert "group.version" not in controller.image.features
    assert update(controller, ("group.version", 1, 1)) is ErrorCode.NONE
    assert controller.image.features["group.version"] == 1


def test_a_feature_that_a_broker_does_not_support_is_refused() -> None:
    controller = DecidingController([registration(0), registration(1, features=())])
    assert update(controller, ("group.version", 1, 1)) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_feature_can_go_up_together_with_what_it_needs() -> None:
    controller = DecidingController(features=default_levels(22))
    assert update(controller, (ELR_VERSION, 1, 1)) is ErrorCode.INVALID_UPDATE_VERSION
    assert update(controller, ("metadata.version", 23, 1), (ELR_VERSION, 1, 1)) is ErrorCode.NONE
    assert controller.image.features[ELR_VERSION] == 1


def test_metadata_versions_between_which_nothing_changed_may_go_down() -> None:
    controller = DecidingController(features=default_levels(29))
    assert update(controller, ("metadata.version", 24, 2)) is ErrorCode.NONE
    assert controller.metadata_version == 24
    assert update(controller, ("metadata.version", 22, 3)) is ErrorCode.INVALID_UPDATE_VERSION


def scram(
    controller: DecidingController,
    upsertions: tuple[ScramCredentialUpsertion, ...] = (),
    deletions: tuple[ScramCredentialDeletion, ...] = (),
) -> dict[str, ErrorCode]:
    ask = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    results = controller.ask(decide_alter_scram_credentials, ask).results
    return {result.user: result.error_code for result in results}


def test_stored_keys_are_those_of_rfc_5802() -> None:
    salt, iterations = b"W22ZaJ0SNY7soEsUEjb6gQ==", 4096
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, iterations)
    controller = DecidingController()
    wanted = ScramCredentialUpsertion(
        name="user", mechanism=1, iterations=iterations, salt=salt, salted_password=salted
    )
    assert scram(controller, (wanted,)) == {"user": ErrorCode.NONE}
    stored = controller.image.scram[ScramKey(1, "user")]
    # A client proves itself by a key of which only the hash is stored.
    message = b"what both have said"
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(stored.stored_key, message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    recovered = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(recovered).digest() == stored.stored_key
    assert stored.server_key == hmac.digest(salted, b"Server Key", "sha256")
    assert (stored.salt, stored.iterations) == (salt, iterations)


def test_credentials_are_described_without_their_keys() -> None:
    controller = DecidingController()
    for mechanism in (1, 2):
        one = ScramCredentialUpsertion(
            name="u", mechanism=mechanism, iterations=5000, salt=b"s", salted_password=b"p"
        )
        assert scram(controller, (one,)) == {"u": ErrorCode.NONE}
    described = describe_scram_credentials(controller.image, DescribeUserScramCredentialsRequest(users=None))
    (result,) = described.results
    assert [(info.mechanism, info.iterations) for info in result.credential_infos] == [(1, 5000), (2, 5000)]
    deletion = ScramCredentialDeletion(name="u", mechanism=1)
    assert scram(controller, deletions=(deletion,)) == {"u": ErrorCode.NONE}
    assert scram(controller, deletions=(deletion,)) == {"u": ErrorCode.RESOURCE_NOT_FOUND}


def test_an_empty_password_is_none() -> None:
    controller = DecidingController()
    one = ScramCredentialUpsertion(name="u", mechanism=1, iterations=5000, salt=b"s", salted_password=b"")
    assert scram(controller, (one,)) == {"u": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert controller.image.scram == {}


def quotas(
    controller: DecidingController, *entries: tuple[dict[str, str | None], dict[str, float | None]]
) -> list[ErrorCode]:
    ask = alter_client_quotas.AlterClientQuotasRequest(
        entries=tuple(
            alter_client_quotas.QuotaAlteration(
                entity=tuple(
                    alter_client_quotas.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ),
                ops=tuple(
                    alter_client_quotas.QuotaOperation(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ),
            )
            for entity, values in entries
        ),
        validate_only=False,
    )
    return [entry.error_code for entry in controller.ask(decide_alter_client_quotas, ask).entries]


def test_quotas_are_set_and_removed() -> None:
    controller = DecidingController()
    user: dict[str, str | None] = {"user": "u"}
    assert quotas(controller, (user, {"producer_byte_rate": 5.0, "request_percentage": 0.5})) == [
        ErrorCode.NONE
    ]
    assert controller.image.quotas == {
        (("user", "u"),): {"producer_byte_rate": 5.0, "request_percentage": 0.5}
    }
    assert quotas(controller, (user, {"producer_byte_rate": 5.0})) == [ErrorCode.NONE]
    assert not controller.records, "what is the same is not written again"
    quotas(controller, (user, {"producer_byte_rate": None, "consumer_byte_rate": None}))
    assert len(controller.records) == 1, "what is not there need not be removed"
    assert controller.image.quotas == {(("user", "u"),): {"request_percentage": 0.5}}


def test_a_quota_that_is_not_a_number_is_refused() -> None:
    controller = DecidingController()
    entry: tuple[dict[str, str | None], dict[str, float | None]] = (
        {"user": "u"}, {"producer_byte_rate": float("nan")},
    )  # fmt: skip
    assert quotas(controller, entry) == [ErrorCode.INVALID_REQUEST]
    assert not controller.records


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, 3),
        ([("user", 2, None)], False, 2),
        ([("user", 0, "u")], False, 2),
        ([("user", 0, "u")], True, 1),
        ([("user", 0, "u"), ("client-id", 1, None)], True, 1),
        ([("client-id", 1, None)], False, 1),
        ([("client-id", 0, "c")], False, 0),
        ([("ip", 2, None)], False, 1),
    ],
    ids=[
        "all",
        "any user",
        "a user",
        "a user strictly",
        "both strictly",
        "default client",
        "none",
        "any address",
    ],
)
def test_quotas_are_found_by_a_filter(components: list[Any], strict: bool, expected: int) -> None:
    controller = DecidingController()
    quotas(
        controller,
        ({"user": "u"}, {"producer_byte_rate": 1.0}),
        ({"user": "u", "client-id": None}, {"producer_byte_rate": 1.0}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.0}),
    )
    ask = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )
    assert len(describe_quotas(controller.image, ask).entries or ()) == expected


@pytest.mark.parametrize(
    "in_order_of_kafka",
    [
        ["request_percentage", "producer_byte_rate"],
        ["consumer_byte_rate", "request_percentage", "producer_byte_rate"],
        ["consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate"],
        ["producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage"],
    ],
    ids=len,
)
def test_quotas_come_in_the_order_of_kafka(in_order_of_kafka: list[str]) -> None:
    for asked in (in_order_of_kafka, list(reversed(in_order_of_kafka))):
        controller = DecidingController()
        quotas(controller, ({"user": "u"}, dict.fromkeys(asked, 1.0)))
        answer = describe_quotas(controller.image, DescribeClientQuotasRequest(components=(), strict=False))
        (entry,) = answer.entries or ()
        assert [value.key for value in entry.values] == in_order_of_kafka


def test_an_address_is_not_asked_for_together_with_a_user() -> None:
    parts = (("ip", 2, None), ("user", 2, None))
    ask = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in parts
        ),
        strict=False,
    )
    answer = describe_quotas(DecidingController().image, ask)
    assert answer.error_code is ErrorCode.INVALID_REQUEST
    assert "Invalid entity filter component combination" in (answer.error_message or "")
