"""Members of classic groups, as far as their own bytes can be read."""

import pytest

from ottla.client.admin.groups import _classic_member
from ottla.model.ids import TopicPartition
from ottla.wire.codec import encode
from ottla.wire.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from ottla.wire.messages.describe_groups import DescribedGroupMember


def _member(metadata: bytes, assignment: bytes) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        member_metadata=metadata,
        member_assignment=assignment,
    )


@pytest.mark.parametrize(
    ("said", "version", "later"),
    [(0, 0, b""), (1, 1, b""), (3, 3, b""), (9, 3, b"fields of a later version")],
)
def test_subscription_and_assignment_are_read_in_every_version(said: int, version: int, later: bytes) -> None:
    subscription = encode(ConsumerProtocolSubscription(topics=("t", "u")), version)
    assigned = AssignedTopicPartitions(topic="t", partitions=(0, 2))
    assignment = encode(ConsumerProtocolAssignment(assigned_partitions=(assigned,)), version)
    blobs = (said.to_bytes(2) + blob + later for blob in (subscription, assignment))
    member = _classic_member(_member(*blobs), "consumer")
    assert member.subscribed_topics == ("t", "u")
    assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 2))


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\xff\xff\0\0\0\0", b"\0\3" + b"\xff" * 9]
)
def test_bytes_that_cannot_be_read_leave_the_member_described(data: bytes) -> None:
    member = _classic_member(_member(data, data), "consumer")
    assert (member.member_id, member.subscribed_topics, member.assignment) == ("m", (), ())


def test_groups_of_other_kinds_keep_their_bytes_to_themselves() -> None:
    data = (0).to_bytes(2) + encode(ConsumerProtocolSubscription(topics=("t",)), 0)
    assert _classic_member(_member(data, data), "connect").subscribed_topics == ()
