"""What is wrong with a heartbeat in itself."""

from typing import Any

import pytest
from tests.support.consumer_world import ConsumerWorld

from ottla.coordination.group.consumer.validation import check_heartbeat
from ottla.coordination.group.refusal import Refused
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

SOME = (TopicPartitions(topic_id=Uuid(bytes(16)), partitions=(0,)),)
JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "subscribed_topic_names": (),
    "topic_partitions": (),
}
STAY: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 3}


def check(version: int = 1, **fields: Any) -> ErrorCode:
    try:
        check_heartbeat(ConsumerGroupHeartbeatRequest(**fields), version, ("uniform", "range"))
    except Refused as refused:
        return refused.error_code if refused.message else ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


@pytest.mark.parametrize(
    "fields",
    [
        JOIN,
        STAY,
        {**JOIN, "subscribed_topic_names": None, "subscribed_topic_regex": ""},
        {**JOIN, "server_assignor": "range"},
        {**STAY, "member_epoch": -1},
        {**STAY, "member_epoch": -2, "instance_id": "i"},
    ],
)
def test_valid_heartbeats_pass(fields: dict[str, Any]) -> None:
    assert check(**fields) is ErrorCode.NONE


@pytest.mark.parametrize(
    "fields",
    [
        {**JOIN, "member_id": ""},
        {**JOIN, "member_id": " \t"},
        {**JOIN, "group_id": ""},
        {**JOIN, "instance_id": ""},
        {**JOIN, "rack_id": " "},
        {**JOIN, "rebalance_timeout_ms": -1},
        {**JOIN, "topic_partitions": None},
        {**JOIN, "topic_partitions": SOME},
        {**JOIN, "subscribed_topic_names": None},
        {**STAY, "member_id": ""},
        {**STAY, "member_id": "", "member_epoch": -1},
        {**STAY, "member_epoch": -2},
        {**STAY, "member_epoch": -3},
    ],
)
def test_malformed_heartbeats_are_invalid(fields: dict[str, Any]) -> None:
    assert check(**fields) is ErrorCode.INVALID_REQUEST


def test_in_version_0_the_coordinator_makes_the_member_id() -> None:
    assert check(0, **{**JOIN, "member_id": ""}) is ErrorCode.NONE
    assert check(0, **{**STAY, "member_id": ""}) is ErrorCode.INVALID_REQUEST


def test_an_unknown_assignor_is_named() -> None:
    assert check(**{**JOIN, "server_assignor": "mine"}) is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_an_invalid_request_is_looked_at_before_its_assignor() -> None:
    assert check(**{**JOIN, "group_id": "", "server_assignor": "mine"}) is ErrorCode.INVALID_REQUEST


def test_a_malformed_heartbeat_is_answered_though_the_group_is_elsewhere() -> None:
    world = ConsumerWorld()
    world.coordinator.shards.partition_count = None
    assert world.heartbeat("", 1).error_code is ErrorCode.INVALID_REQUEST
    assert world.heartbeat("m", 1).error_code is ErrorCode.NOT_COORDINATOR
