"""Who is eligible to lead when `min.insync.replicas` changes, or the feature does."""

import pytest
from tests.support.deciding import DecidingController, registration

from ottla.metadata.features import ELR_VERSION, default_levels
from ottla.metadata.image import DEFAULT_BROKERS, ConfigResource
from ottla.quorum.controller.brokers.fencing import fence, unfence
from ottla.quorum.controller.configs import decide_incremental_alter_configs
from ottla.quorum.controller.features import decide_update_features
from ottla.quorum.controller.partitions.leadership import BrokerChange, partition_changes
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

MIN_ISR = "min.insync.replicas"
UPGRADE, SAFE_DOWNGRADE = 1, 2


def controller_with(*replicas: int, elr: int = 1, min_isr: str = "2") -> DecidingController:
    """Return a controller of a topic that brokers have."""
    controller = DecidingController(
        [registration(one) for one in (0, *replicas)],
        features={**default_levels(), ELR_VERSION: elr},
        configs={MIN_ISR: min_isr},
    )
    controller.have("orders", replicas)
    return controller


def leave(controller: DecidingController, *brokers: int) -> None:
    for broker in brokers:
        controller.replay(*fence(controller.view, controller.image.brokers[broker]))


def come_back(controller: DecidingController, broker: int) -> None:
    controller.replay(*unfence(controller.view, controller.image.brokers[broker]))


def stop_uncleanly(controller: DecidingController, broker: int) -> None:
    """Replay that the next process of a broker that is fenced may have lost records."""
    controller.replay(*partition_changes(controller.view, BrokerChange(stopped_uncleanly=broker)))


def set_config(controller: DecidingController, kind: ResourceType, name: str, value: str) -> ErrorCode:
    config = AlterableConfig(name=MIN_ISR, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    answer = controller.ask(decide_incremental_alter_configs, request)
    error: ErrorCode = answer.responses[0].error_code
    return error


def set_elr(controller: DecidingController, level: int) -> None:
    kind = UPGRADE if level else SAFE_DOWNGRADE
    update = FeatureUpdateKey(feature=ELR_VERSION, max_version_level=level, upgrade_type=kind)
    answer = controller.ask(decide_update_features, UpdateFeaturesRequest(feature_updates=(update,)))
    assert answer.error_code is ErrorCode.NONE, answer.error_message


@pytest.mark.parametrize("replicas", [(1,), (1, 2), (1, 2, 3)])
@pytest.mark.parametrize("value", ["1", "2", "3"])
@pytest.mark.parametrize("resource", [(ResourceType.TOPIC, "orders"), (ResourceType.BROKER, "")])
def test_a_leader_is_elected_though_the_number_changed_while_there_was_none(
    replicas: tuple[int, ...], value: str, resource: tuple[ResourceType, str]
) -> None:
    controller = controller_with(*replicas)
    leave(controller, *replicas)
    eligible = controller.partition("orders").eligible_leader_replicas
    assert (controller.partition("orders").leader, controller.partition("orders").isr) == (-1, ())
    assert eligible is not None

    assert set_config(controller, *resource, value) is ErrorCode.NONE
    come_back(controller, eligible[-1])

    partition = controller.partition("orders")
    assert (partition.leader, partition.isr) == (eligible[-1], (eligible[-1],))
    assert partition.leader_recovery_state == 0


def test_where_somebody_leads_the_others_are_forgotten() -> None:
    controller = controller_with(1, 2, 3, min_isr="3")
    leave(controller, 3)
    assert controller.partition("orders").eligible_leader_replicas == (3,)
    set_config(controller, ResourceType.TOPIC, "orders", "2")
    assert controller.partition("orders").eligible_leader_replicas is None


def test_who_was_not_eligible_does_not_become_so() -> None:
    controller = controller_with(1, 2, 3)
    leave(controller, 3, 2, 1)
    assert controller.partition("orders").eligible_leader_replicas == (1, 2)
    set_config(controller, ResourceType.TOPIC, "orders", "1")
    come_back(controller, 3)
    assert controller.partition("orders").leader == -1


@pytest.mark.parametrize("replicas", [(1,), (1, 2, 3)])
def test_a_leader_is_elected_though_eligible_leaders_were_given_up_while_there_was_none(
    replicas: tuple[int, ...],
) -> None:
    controller = controller_with(*replicas)
    leave(controller, *reversed(replicas))
    eligible = controller.partition("orders").eligible_leader_replicas
    assert eligible is not None

    set_elr(controller, 0)
    assert controller.partition("orders").eligible_leader_replicas is None
    come_back(controller, eligible[-1])
    assert controller.partition("orders").leader == eligible[-1]


@pytest.mark.parametrize("replicas", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("level", [0, 1])
def test_the_last_leader_leads_again_whenever_eligible_leaders_begin_or_end(
    replicas: tuple[int, ...], level: int
) -> None:
    controller = controller_with(*replicas, elr=1 - level, min_isr="1")
    leave(controller, *reversed(replicas))
    if level:
        set_elr(controller, level)
        stop_uncleanly(controller, 1)
    else:
        stop_uncleanly(controller, 1)
        set_elr(controller, level)
    assert controller.partition("orders").leader == -1

    come_back(controller, 1)
    assert controller.partition("orders").leader == 1
    assert controller.partition("orders").isr == (1,)


def test_when_eligible_leaders_begin_the_number_becomes_the_clusters() -> None:
    controller = controller_with(1, 2, 3, elr=0)
    assert set_config(controller, ResourceType.BROKER, "1", "1") is ErrorCode.NONE
    assert controller.image.broker_config(1) == {MIN_ISR: "1"}

    set_elr(controller, 1)
    assert controller.image.configs[DEFAULT_BROKERS][MIN_ISR] == "2", "as the controller's file has it"
    assert MIN_ISR not in controller.image.configs.get(ConfigResource(ResourceType.BROKER, "1"), {})
    assert set_config(controller, ResourceType.BROKER, "1", "1") is not ErrorCode.NONE


def test_a_number_that_the_cluster_has_already_stays_when_eligible_leaders_begin() -> None:
    controller = controller_with(1, 2, 3, elr=0)
    assert set_config(controller, ResourceType.BROKER, "", "3") is ErrorCode.NONE
    set_elr(controller, 1)
    assert controller.image.configs[DEFAULT_BROKERS][MIN_ISR] == "3"
