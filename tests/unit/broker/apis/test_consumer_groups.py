"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, as the node serves them."""

from pathlib import Path

from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

GROUP_RESOURCE = 32
UNSAFE_DOWNGRADE = 3
NO_OPERATIONS = -2147483648


def heartbeat(client: InProcessClient, epoch: int) -> ConsumerGroupHeartbeatResponse:
    join = (
        {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("orders",), "topic_partitions": ()}
        if epoch == 0
        else {}
    )
    ask = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **join)  # type: ignore[arg-type]
    answer: ConsumerGroupHeartbeatResponse = client.ask(ask)
    return answer


def join(client: InProcessClient) -> ConsumerGroupHeartbeatResponse:
    topic = CreatableTopic(name="orders", num_partitions=2, replication_factor=1, assignments=(), configs=())
    client.ask(CreateTopicsRequest(topics=(topic,)))
    client.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    return heartbeat(client, 0)


def describe(client: InProcessClient, operations: bool = False) -> DescribedGroup:
    ask = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=operations)
    group: DescribedGroup = client.ask(ask).groups[0]
    return group


def test_a_member_joins_and_is_described(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        answer = join(client)
        assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
        group = describe(client)
        assert group.members[0].client_host == "/127.0.0.1"
        assert group.members[0].client_id == "test"
        assert group.authorized_operations == NO_OPERATIONS
        assert describe(client, operations=True).authorized_operations > 0


def test_new_partitions_reach_the_member(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"group.consumer.assignment.interval.ms": "0"}) as node:
        client = InProcessClient(node)
        join(client)
        more = CreatePartitionsTopic(name="orders", partition_count=3, assignments=None)
        client.ask(CreatePartitionsRequest(topics=(more,), timeout_ms=1_000, validate_only=False))
        answer = heartbeat(client, 2)
        assert answer.assignment is not None
        assert answer.assignment.topic_partitions[0].partitions == (0, 1, 2)


def test_a_groups_own_configs_hold_at_once_and_within_bounds(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        assert join(client).heartbeat_interval_ms == 5_000
        for value, expected in (("7000", 7_000), ("100", 7_000), ("15000", 15_000)):
            config = AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value=value)
            resource = AlterConfigsResource(
                resource_type=GROUP_RESOURCE, resource_name="g", configs=(config,)
            )
            client.ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
            assert heartbeat(client, 2).heartbeat_interval_ms == expected


def test_the_protocol_can_be_switched_off(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"group.coordinator.rebalance.protocols": "classic"}) as node:
        client = InProcessClient(node)
        assert join(client).error_code is ErrorCode.UNSUPPORTED_VERSION
        assert describe(client).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_the_cluster_must_have_agreed_on_the_protocol(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=UNSAFE_DOWNGRADE)
        client.ask(UpdateFeaturesRequest(feature_updates=(update,)))
        assert join(client).error_code is ErrorCode.UNSUPPORTED_VERSION
