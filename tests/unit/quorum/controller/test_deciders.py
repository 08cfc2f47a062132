"""Every request that a controller decides about has a decision, and can be refused as a whole."""

import inspect
from typing import Any, get_type_hints

import pytest

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.controller.deciders import MODULES, NOT_CONTROLLER, find_decider
from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.codec import decode, encode
from ottla.wire.compiling.error_finder import compile_error_finder
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import Unencodable
from ottla.wire.messages import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    elect_leaders,
    expire_delegation_token,
    incremental_alter_configs,
    renew_delegation_token,
    unregister_broker,
    update_features,
)

ID = Uuid(b"an-id-0000000001")
NO_LISTENERS: dict[str, Any] = {"incarnation_id": ID, "listeners": (), "features": ()}

REQUESTS: dict[ApiKey, list[Any]] = {
    ApiKey.ALLOCATE_PRODUCER_IDS: [allocate_producer_ids.AllocateProducerIdsRequest(broker_id=1)],
    ApiKey.ALTER_CLIENT_QUOTAS: [
        alter_client_quotas.AlterClientQuotasRequest(
            entries=tuple(
                alter_client_quotas.QuotaAlteration(
                    entity=(alter_client_quotas.EntityData(entity_type="user", entity_name=name),), ops=()
                )
                for name in ("a", None)
            ),
            validate_only=False,
        )
    ],
    ApiKey.ALTER_CONFIGS: [
        alter_configs.AlterConfigsRequest(
            resources=(
                alter_configs.AlterConfigsResource(resource_type=2, resource_name="t", configs=()),
                alter_configs.AlterConfigsResource(resource_type=4, resource_name="1", configs=()),
            ),
            validate_only=False,
        )
    ],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=(
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=2, resource_name="t", configs=()
                ),
            ),
            validate_only=False,
        )
    ],
    ApiKey.ALTER_PARTITION: [alter_partition.AlterPartitionRequest(broker_id=1, broker_epoch=5, topics=())],
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: [
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=(
                alter_partition_reassignments.ReassignableTopic(
                    name="t",
                    partitions=(
                        alter_partition_reassignments.ReassignablePartition(partition_index=0),
                        alter_partition_reassignments.ReassignablePartition(partition_index=1),
                    ),
                ),
            )
        )
    ],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: [
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=(alter_user_scram_credentials.ScramCredentialDeletion(name="a", mechanism=1),),
            upsertions=(
                alter_user_scram_credentials.ScramCredentialUpsertion(
                    name="b", mechanism=1, iterations=4096, salt=b"", salted_password=b""
                ),
            ),
        )
    ],
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: [
        assign_replicas_to_dirs.AssignReplicasToDirsRequest(broker_id=1, directories=())
    ],
    ApiKey.BROKER_HEARTBEAT: [
        broker_heartbeat.BrokerHeartbeatRequest(
            broker_id=1, current_metadata_offset=0, want_fence=False, want_shut_down=True
        )
    ],
    ApiKey.BROKER_REGISTRATION: [
        broker_registration.BrokerRegistrationRequest(broker_id=1, cluster_id="c", rack=None, **NO_LISTENERS)
    ],
    ApiKey.CONTROLLER_REGISTRATION: [
        controller_registration.ControllerRegistrationRequest(
            controller_id=1, zk_migration_ready=False, **NO_LISTENERS
        )
    ],
    ApiKey.CREATE_PARTITIONS: [
        create_partitions.CreatePartitionsRequest(
            topics=(create_partitions.CreatePartitionsTopic(name="t", partition_count=2, assignments=None),),
            timeout_ms=0,
            validate_only=False,
        )
    ],
    ApiKey.CREATE_TOPICS: [
        create_topics.CreateTopicsRequest(
            topics=tuple(
                create_topics.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
                )
                for name in ("t", "u")
            )
        )
    ],
    ApiKey.CREATE_ACLS: [
        create_acls.CreateAclsRequest(
            creations=(
                create_acls.AclCreation(
                    resource_type=2,
                    resource_name="t",
                    principal="User:u",
                    host="*",
                    operation=3,
                    permission_type=3,
                ),
            )
            * 2
        )
    ],
    ApiKey.CREATE_DELEGATION_TOKEN: [
        create_delegation_token.CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1)
    ],
    ApiKey.RENEW_DELEGATION_TOKEN: [
        renew_delegation_token.RenewDelegationTokenRequest(hmac=b"secret", renew_period_ms=-1)
    ],
    ApiKey.EXPIRE_DELEGATION_TOKEN: [
        expire_delegation_token.ExpireDelegationTokenRequest(hmac=b"secret", expiry_time_period_ms=-1)
    ],
    ApiKey.DELETE_ACLS: [
        delete_acls.DeleteAclsRequest(
            filters=(
                delete_acls.DeleteAclsFilter(
                    resource_type_filter=1,
                    resource_name_filter=None,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                ),
            )
        )
    ],
    ApiKey.DELETE_TOPICS: [
        delete_topics.DeleteTopicsRequest(topic_names=("t",), timeout_ms=0),
        delete_topics.DeleteTopicsRequest(
            topics=(
                delete_topics.DeleteTopicState(name="t", topic_id=ZERO_UUID),
                delete_topics.DeleteTopicState(name=None, topic_id=ID),
            ),
            timeout_ms=0,
        ),
    ],
    ApiKey.ELECT_LEADERS: [
        elect_leaders.ElectLeadersRequest(
            topic_partitions=(elect_leaders.TopicPartitions(topic="t", partitions=(0, 1)),)
        )
    ],
    ApiKey.UNREGISTER_BROKER: [unregister_broker.UnregisterBrokerRequest(broker_id=1)],
    ApiKey.UPDATE_FEATURES: [
        update_features.UpdateFeaturesRequest(
            feature_updates=(update_features.FeatureUpdateKey(feature="f", max_version_level=1),)
        )
    ],
}


def versions_of(api: Api, ask: Any) -> list[int]:
    """Return the versions in which a client can send a request."""
    versions = []
    for version in range(api.versions.first, api.versions.last + 1):
        try:
            encode(ask, version)
        except Unencodable:
            continue
        versions.append(version)
    # The first version has no place for the error of the request as a whole: the handler takes it out.
    return versions[1:] if api.key is ApiKey.ELECT_LEADERS else versions


def test_every_decided_api_is_tried_here() -> None:
    assert REQUESTS.keys() == MODULES.keys()


@pytest.mark.parametrize("key", sorted(MODULES))
def test_a_decision_is_about_the_request_that_it_is_registered_for(key: ApiKey) -> None:
    decide = find_decider(api_of(key).request).decide
    _, ask = inspect.signature(decide).parameters
    assert get_type_hints(decide)[ask] is api_of(key).request


@pytest.mark.parametrize("key", sorted(MODULES))
def test_every_request_can_be_refused_in_every_version(key: ApiKey) -> None:
    api = api_of(key)
    decider = find_decider(api.request)
    for ask in REQUESTS[key]:
        refused = decider.refuse(ask, NOT_CONTROLLER)
        assert type(refused) is api.response
        for version in versions_of(api, ask):
            found: list[ErrorCode] = []
            back = decode(api.response, encode(refused, version), version)
            compile_error_finder(api.response, version)(back, found.append)
            assert found, f"version {version} says nothing"
            assert set(found) == {ErrorCode.NOT_CONTROLLER}


def test_a_refusal_names_everything_that_was_asked_for() -> None:
    def errors_of(key: ApiKey, ask: Any) -> int:
        api = api_of(key)
        found: list[ErrorCode] = []
        find = compile_error_finder(api.response, api.versions.last)
        find(find_decider(api.request).refuse(ask, NOT_CONTROLLER), found.append)
        return len(found)

    expected = {
        ApiKey.ALTER_CLIENT_QUOTAS: 2,
        ApiKey.ALTER_CONFIGS: 2,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: 3,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 2,
        ApiKey.CREATE_TOPICS: 2,
        ApiKey.DELETE_TOPICS: 2,
        ApiKey.ELECT_LEADERS: 3,
    }
    assert {key: errors_of(key, REQUESTS[key][-1]) for key in expected} == expected
