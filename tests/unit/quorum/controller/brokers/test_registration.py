"""Brokers come, go and stop. That the records are Kafka's is tested on its logs."""

from typing import Any

import pytest
from tests.support.deciding import (
    CLUSTER_ID,
    SESSION_TIMEOUT_MS,
    DecidingController,
    directory_of,
    registration,
)

from ottla.metadata.features import KRAFT_VERSION, default_levels
from ottla.metadata.topics import NO_LEADER, RECOVERING
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.heartbeat import decide_heartbeat
from ottla.quorum.controller.brokers.registration import (
    decide_register_broker,
    decide_register_controller,
    decide_unregister_broker,
)
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest

NEW = Uuid(b"incarnation-0002")


def register(controller: DecidingController, broker_id: int = 0, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": NEW,
        "listeners": (),
        "features": tuple(
            Feature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in registration(broker_id).features
        ),
        "rack": None,
        "log_dirs": (directory_of(broker_id),),
        "previous_broker_epoch": -1,
    }
    return controller.ask(decide_register_broker, BrokerRegistrationRequest(**{**fields, **changes}))


def heartbeat(controller: DecidingController, broker_id: int = 0, **wishes: Any) -> BrokerHeartbeatResponse:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "broker_epoch": controller.image.brokers[broker_id].broker_epoch,
        "current_metadata_offset": controller.image.offset,
        "want_fence": False,
        "want_shut_down": False,
    }
    return controller.ask(decide_heartbeat, BrokerHeartbeatRequest(**{**fields, **wishes}))


def test_a_new_broker_is_fenced_until_it_wants_in() -> None:
    controller = DecidingController(brokers=())
    next_offset = controller.image.offset + 1
    assert register(controller).broker_epoch == next_offset
    assert controller.image.brokers[0].fenced
    assert not heartbeat(controller).is_fenced
    assert not controller.image.brokers[0].fenced


def test_a_broker_that_has_not_read_its_own_registration_stays_fenced() -> None:
    controller = DecidingController(brokers=())
    epoch = register(controller).broker_epoch
    answer = heartbeat(controller, current_metadata_offset=epoch - 1)
    assert (answer.is_caught_up, answer.is_fenced) == (False, True)


def test_a_clean_restart_keeps_what_the_broker_had_in_sync() -> None:
    controller = DecidingController()
    controller.have("t", (0,))
    epoch = controller.image.brokers[0].broker_epoch
    heartbeat(controller, want_shut_down=True)
    heartbeat(controller, want_shut_down=True)
    register(controller, previous_broker_epoch=epoch)
    assert controller.partition("t").eligible_leader_replicas == (0,)
    heartbeat(controller)
    partition = controller.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (0, (0,), 0)
    assert partition.leader_epoch == 2, "once for leaving, once for coming back"


def test_after_an_unclean_stop_a_broker_that_was_alone_may_have_lost_records() -> None:
    controller = DecidingController()
    controller.have("t", (0,))
    register(controller)
    partition = controller.partition("t")
    assert (partition.leader, partition.isr) == (NO_LEADER, ())
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == (None, (0,))
    heartbeat(controller)
    partition = controller.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (0, (0,), RECOVERING)


def test_after_an_unclean_stop_another_replica_leads_and_the_broker_is_not_trusted() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1))
    register(controller)
    partition = controller.partition("t")
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (1, (1,), None)


def test_without_eligible_leaders_an_unclean_stop_is_like_a_clean_one() -> None:
    controller = DecidingController(features=default_levels(21))
    controller.have("t", (0,))
    register(controller)
    assert (controller.partition("t").leader, controller.partition("t").isr) == (NO_LEADER, (0,))
    heartbeat(controller)
    assert controller.partition("t").leader == 0


def test_the_same_incarnation_keeps_its_epoch_and_state() -> None:
    controller = DecidingController()
    known = controller.image.brokers[0]
    answer = register(controller, incarnation_id=known.incarnation_id, rack="new")
    assert answer.broker_epoch == known.broker_epoch
    assert not controller.image.brokers[0].fenced
    assert controller.image.brokers[0].rack == "new"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid(bytes(15) + b"\x05"),)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory_of(0), directory_of(0))}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory_of(1),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": ()}, ErrorCode.UNSUPPORTED_VERSION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
    ids=["cluster", "no directory", "reserved", "twice", "another's", "features", "ZooKeeper"],
)
def test_what_does_not_fit_is_not_registered(changes: dict[str, Any], expected: ErrorCode) -> None:
    controller = DecidingController([registration(1)])
    assert register(controller, **changes).error_code is expected
    assert not controller.records


def test_a_broker_too_old_for_a_finalized_level_is_refused() -> None:
    controller = DecidingController(brokers=())
    features = tuple(
        Feature(name=one.name, min_supported_version=0, max_supported_version=0)
        if one.name == "group.version"
        else Feature(
            name=one.name,
            min_supported_version=one.min_supported_version,
            max_supported_version=one.max_supported_version,
        )
        for one in registration(0).features
    )
    assert register(controller, features=features).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_leads_hands_over_before_it_may_stop() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1))
    first = heartbeat(controller, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert controller.image.brokers[0].in_controlled_shutdown
    assert (controller.partition("t").leader, controller.partition("t").isr) == (1, (1,))
    heartbeat(controller, 1, current_metadata_offset=controller.image.offset - 1)
    second = heartbeat(controller, want_shut_down=True)
    assert not second.should_shut_down, "the other broker does not know yet that it leads"
    heartbeat(controller, 1)
    third = heartbeat(controller, want_shut_down=True)
    assert (third.should_shut_down, third.is_fenced) == (True, True)


def test_a_broker_that_leads_nothing_may_stop_at_once() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (1, 0))
    assert heartbeat(controller, want_shut_down=True).should_shut_down
    assert controller.partition("t").isr == (1,)


def test_a_broker_that_comes_back_leads_only_what_nobody_leads() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1))
    heartbeat(controller, want_fence=True)
    assert controller.partition("t").leader == 1
    heartbeat(controller)
    assert controller.partition("t").leader == 1


def test_a_failed_directory_takes_the_leadership_of_what_lies_in_it() -> None:
    controller = DecidingController([registration(0, directories=2), registration(1)])
    controller.have("t", (0, 1), (0, 1))
    bad, good = directory_of(0, 0), directory_of(0, 1)
    from ottla.wire.metadata_records.partitions import PartitionChangeRecord

    topic_id = controller.topic("t").id
    controller.replay(
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, directories=(bad, directory_of(1))),
        PartitionChangeRecord(partition_id=1, topic_id=topic_id, directories=(good, directory_of(1))),
    )
    heartbeat(controller, offline_log_dirs=(bad,))
    assert (controller.partition("t", 0).leader, controller.partition("t", 0).isr) == (1, (1,))
    assert (controller.partition("t", 1).leader, controller.partition("t", 1).isr) == (0, (0, 1))
    assert controller.image.brokers[0].log_dirs == (good,)


def test_cordoned_directories_are_noted_once() -> None:
    controller = DecidingController()
    heartbeat(controller, cordoned_log_dirs=())
    assert controller.image.brokers[0].cordoned_log_dirs == ()
    heartbeat(controller, cordoned_log_dirs=())
    assert not controller.records


def test_a_heartbeat_of_another_life_is_stale() -> None:
    controller = DecidingController()
    assert heartbeat(controller, broker_epoch=5).error_code is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_alive_cannot_be_unregistered() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1))
    before = controller.image
    answer = controller.ask(decide_unregister_broker, UnregisterBrokerRequest(broker_id=0))
    assert answer.error_code is ErrorCode.POLICY_VIOLATION
    assert "stop it" in (answer.error_message or "")
    assert controller.image == before


def test_an_unregistered_broker_is_in_sync_with_nothing() -> None:
    controller = DecidingController([registration(0), registration(1)])
    controller.have("t", (0, 1))
    heartbeat(controller, want_fence=True)
    answer = controller.ask(decide_unregister_broker, UnregisterBrokerRequest(broker_id=0))
    assert answer.error_code is ErrorCode.NONE
    assert 0 not in controller.image.brokers
    assert (controller.partition("t").leader, controller.partition("t").isr) == (1, (1,))
    answer = controller.ask(decide_unregister_broker, UnregisterBrokerRequest(broker_id=0))
    assert answer.error_code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_controllers_are_registered_where_the_metadata_version_has_them() -> None:
    ask = ControllerRegistrationRequest(
        controller_id=5, incarnation_id=NEW, zk_migration_ready=False, listeners=(), features=()
    )
    controller = DecidingController()
    assert controller.ask(decide_register_controller, ask).error_code is ErrorCode.NONE
    assert controller.image.controllers[5].incarnation_id == NEW
    old = DecidingController(features=default_levels(14))
    assert old.ask(decide_register_controller, ask).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_another_process_cannot_take_the_place_of_a_broker_that_lives() -> None:
    controller = DecidingController()
    heartbeat(controller)
    controller.monotonic_ms = SESSION_TIMEOUT_MS
    assert register(controller).error_code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    controller.monotonic_ms += 1
    assert register(controller).error_code is ErrorCode.NONE


def test_the_same_process_may_register_again_while_its_session_lasts() -> None:
    controller = DecidingController()
    heartbeat(controller)
    known = controller.image.brokers[0]
    assert register(controller, incarnation_id=known.incarnation_id).error_code is ErrorCode.NONE


def test_a_broker_that_stopped_cleanly_may_come_back_at_once() -> None:
    controller = DecidingController()
    heartbeat(controller)
    epoch = controller.image.brokers[0].broker_epoch
    assert register(controller, previous_broker_epoch=epoch).error_code is ErrorCode.NONE


def test_a_broker_that_was_let_go_may_come_back_at_once() -> None:
    controller = DecidingController()
    heartbeat(controller)
    assert heartbeat(controller, want_shut_down=True).should_shut_down
    assert register(controller).error_code is ErrorCode.NONE


def test_a_broker_has_to_know_the_level_of_the_quorum() -> None:
    controller = DecidingController(brokers=())
    features = tuple(
        Feature(
            name=one.name,
            min_supported_version=one.min_supported_version,
            max_supported_version=one.max_supported_version,
        )
        for one in registration(0).features
        if one.name != KRAFT_VERSION
    )
    assert register(controller, features=features).error_code is ErrorCode.UNSUPPORTED_VERSION
