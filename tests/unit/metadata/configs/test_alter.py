"""A change of configs is made or refused; the differential tests hold the refusals against Kafka's."""

import pytest

from ottla.metadata.configs.alter import (
    Change,
    NewTexts,
    Situation,
    check_new_topic,
    decide_changes,
    decide_replacement,
    find_repeated_resources,
)
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.configs.load import STARTING_VALUES
from ottla.metadata.image import ConfigResource
from ottla.wire.config_kinds import AlterOperation, ResourceType
from ottla.wire.error_code import ErrorCode

SET, DELETE, APPEND, SUBTRACT = AlterOperation
TOPIC = ConfigResource(ResourceType.TOPIC, "t")
BROKER = ConfigResource(ResourceType.BROKER, "0")
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")
GROUP = ConfigResource(ResourceType.GROUP, "g")
SUBSCRIPTION = ConfigResource(ResourceType.CLIENT_METRICS, "m")

SITUATION = Situation(
    EffectiveConfigs({**STARTING_VALUES, "log.dirs": "/data"}), has_eligible_leader_replicas=True
)


def change(
    resource: ConfigResource, *changes: tuple[int, str, str | None], current: dict[str, str] | None = None
) -> NewTexts:
    asked = [Change(name, operation, value) for operation, name, value in changes]
    return decide_changes(resource, asked, current or {}, SITUATION)


def refusal(resource: ConfigResource, *changes: tuple[int, str, str | None]) -> ChangeRefused:
    with pytest.raises(ChangeRefused) as caught:
        change(resource, *changes)
    return caught.value


def test_a_config_is_set_and_taken_away() -> None:
    assert change(TOPIC, (SET, "segment.bytes", "2000000")) == {"segment.bytes": "2000000"}
    assert change(TOPIC, (DELETE, "segment.bytes", "ignored"), current={"segment.bytes": "2000000"}) == {
        "segment.bytes": None
    }


def test_what_a_topic_has_already_is_not_written_again() -> None:
    assert change(TOPIC, (SET, "retention.ms", "5"), current={"retention.ms": "5"}) == {}
    assert change(TOPIC, (DELETE, "retention.ms", None)) == {}


def test_what_a_broker_has_already_is_written_again() -> None:
    name = "log.cleaner.backoff.ms"
    assert change(BROKER, (SET, name, "5"), current={name: "5"}) == {name: "5"}


def test_a_list_is_appended_to_starting_from_its_default() -> None:
    assert change(TOPIC, (APPEND, "cleanup.policy", "compact")) == {"cleanup.policy": "delete,compact"}
    assert change(TOPIC, (APPEND, "cleanup.policy", "delete"), current={"cleanup.policy": "delete"}) == {}


def test_a_list_is_subtracted_from() -> None:
    current = {"cleanup.policy": "delete,compact"}
    assert change(TOPIC, (SUBTRACT, "cleanup.policy", "delete,other"), current=current) == {
        "cleanup.policy": "compact"
    }
    assert change(TOPIC, (SUBTRACT, "cleanup.policy", "delete")) == {"cleanup.policy": ""}


def test_each_element_is_subtracted_once_for_each_time_it_is_named() -> None:
    name = "leader.replication.throttled.replicas"
    current = {name: "0:1,1:1,0:1,0:1"}
    assert change(TOPIC, (SUBTRACT, name, "0:1,0:1"), current=current) == {name: "1:1,0:1"}


def test_many_elements_are_appended_in_linear_time() -> None:
    """Comparing each with all takes hours. The result is too long, which is known only then."""
    many = ",".join(f"{number}:1" for number in range(300_000))
    error = refusal(TOPIC, (APPEND, "leader.replication.throttled.replicas", many))
    assert "would be longer than" in error.message


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (TOPIC, "segment.ms"),
        (BROKER, "num.io.threads"),
        (GROUP, "share.isolation.level"),
        (SUBSCRIPTION, "metrics"),
    ],
)
def test_what_is_no_list_to_the_controller_cannot_be_appended_to(
    resource: ConfigResource, name: str, operation: int
) -> None:
    refused = refusal(resource, (operation, name, "1"))
    assert refused.error_code is ErrorCode.INVALID_CONFIG
    assert name in refused.message


def test_a_list_does_not_grow_beyond_what_a_string_can_hold() -> None:
    name = "leader.replication.throttled.replicas"
    long_list = ",".join(f"{partition}:1" for partition in range(5_000))
    with pytest.raises(ChangeRefused, match="longer than") as caught:
        change(TOPIC, (APPEND, name, "9999:1"), current={name: long_list})
    assert caught.value.error_code is ErrorCode.INVALID_CONFIG


def test_an_unknown_operation_is_refused() -> None:
    assert refusal(TOPIC, (9, "segment.ms", "1")).error_code is ErrorCode.INVALID_REQUEST


def test_the_same_config_twice_is_refused() -> None:
    refused = refusal(TOPIC, (SET, "segment.ms", "1"), (DELETE, "segment.ms", None))
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert refused.message == "Error due to duplicate config keys"


def test_a_resource_twice_in_one_request_is_found() -> None:
    assert find_repeated_resources([TOPIC, BROKER, TOPIC]) == {TOPIC}


def test_an_override_of_another_version_does_not_stand_in_the_way() -> None:
    assert change(TOPIC, (SET, "retention.ms", "5"), current={"from.the.future": "1"}) == {
        "retention.ms": "5"
    }
    stored = {"num.partitions": "7"}
    assert change(BROKER, (SET, "log.cleaner.backoff.ms", "5"), current=stored) == {
        "log.cleaner.backoff.ms": "5"
    }


def test_overrides_are_judged_together() -> None:
    with pytest.raises(ChangeRefused, match=r"max\.compaction\.lag\.ms"):
        change(TOPIC, (SET, "max.compaction.lag.ms", "5"), current={"min.compaction.lag.ms": "10"})


def test_replacing_takes_away_what_is_not_named() -> None:
    current = {"retention.ms": "5", "segment.ms": "7"}
    wanted = [("retention.ms", "5"), ("flush.ms", "9")]
    assert decide_replacement(TOPIC, wanted, current, SITUATION) == {"flush.ms": "9", "segment.ms": None}


def test_the_clusters_min_isr_cannot_be_taken_away_while_elections_rely_on_it() -> None:
    current = {"min.insync.replicas": "2"}
    with pytest.raises(ChangeRefused) as caught:
        decide_replacement(ALL_BROKERS, [], current, SITUATION)
    assert caught.value.error_code is ErrorCode.INVALID_CONFIG
    old_cluster = SITUATION._replace(has_eligible_leader_replicas=False)
    assert decide_replacement(ALL_BROKERS, [], current, old_cluster) == {"min.insync.replicas": None}


def test_another_broker_cannot_be_changed_here() -> None:
    other = ConfigResource(ResourceType.BROKER, "5")
    assert refusal(other, (SET, "log.cleaner.threads", "2")).error_code is ErrorCode.INVALID_REQUEST


def test_a_new_topics_overrides_are_judged() -> None:
    assert check_new_topic([("retention.ms", "5"), ("retention.ms", "6")]) == {"retention.ms": "6"}
    for overrides in ([("retention.ms", None)], [("foo", "1")], [("retention.ms", "x")]):
        with pytest.raises(ChangeRefused) as caught:
            check_new_topic(overrides)
        assert caught.value.error_code is ErrorCode.INVALID_CONFIG
