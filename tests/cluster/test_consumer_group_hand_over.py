"""Consumer groups survive a change of the server on one directory: Ottla, Apache Kafka, and back.

Members go on with their epochs. No rebalance starts: the hash of the topics is the same on both sides.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.differential.group_talks import RETRIABLE, Talk
from tests.java.apache_kafka import ApacheKafka
from tests.java.complaints import ERRORS, complaints
from tests.support.consumer_world import essence
from tests.support.group_requests import OTHER_TOPIC, TOPIC, commit_request, fetch_request, join_request
from tests.support.ottla_node import OttlaNode

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

PROPERTIES = {
    "node.id": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    # No member's session ends while servers are changed.
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}
GROUPS = ("plain", "waiting", "away", "regex", "mixed", "empty", "newer")


def beat(talk: Talk, group: str, member: str, epoch: int, **fields: Any) -> Any:
    ask = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
    while (answer := talk.client().ask(ask)).error_code in RETRIABLE:
        pass
    assert answer.error_code is ErrorCode.NONE, answer
    return answer


def join(talk: Talk, group: str, member: str, *topics: str, **fields: Any) -> Any:
    defaults = {
        "rebalance_timeout_ms": 600_000, "subscribed_topic_names": topics or (TOPIC,), "topic_partitions": (),
    }  # fmt: skip
    return beat(talk, group, member, 0, **{**defaults, **fields})


def commit(talk: Talk, group: str, member: str, epoch: int, offset: int) -> None:
    request = commit_request(group, {0: offset}, generation=epoch, member_id=member)
    answer = talk.client().ask(request, 9)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE, answer


def view(talk: Talk) -> Any:
    """Return all that clients can see of the groups, as soon as they are loaded."""
    ask = ConsumerGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False)
    groups = talk.client().ask(ask).groups
    while any(group.error_code in RETRIABLE for group in groups):
        groups = talk.client().ask(ask).groups
    offsets = [
        talk.client().ask(fetch_request(group, topics={TOPIC: (0, 1, 2)}), 9).groups[0] for group in GROUPS
    ]
    return essence(groups), [essence(group) for group in offsets]


def owned(talk: Talk, *numbers: int) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(topic_id=talk.topic_id, partitions=numbers),)


def make_groups(talk: Talk) -> None:
    join(talk, "plain", "a", TOPIC, OTHER_TOPIC)
    commit(talk, "plain", "a", 2, 100)
    # One member has to give up what the other waits for.
    join(talk, "waiting", "a")
    join(talk, "waiting", "b")
    beat(talk, "waiting", "a", 2)
    join(talk, "away", "a", instance_id="i")
    beat(talk, "away", "a", -2, instance_id="i")
    join(talk, "regex", "a", subscribed_topic_regex=f"{TOPIC}.*", subscribed_topic_names=())
    while beat(talk, "regex", "a", 1).member_epoch == 1:
        pass
    join(talk, "mixed", "a")
    required = talk.client().ask(join_request("mixed", session_timeout_ms=600_000))
    joined = talk.client().ask(join_request("mixed", required.member_id, session_timeout_ms=600_000))
    assert joined.error_code is ErrorCode.NONE, joined
    join(talk, "empty", "a")
    commit(talk, "empty", "a", 2, 7)
    beat(talk, "empty", "a", -1)


def go_on(talk: Talk) -> None:
    """Make the next step in each group, as its members would."""
    assert beat(talk, "plain", "a", 2).assignment is None, "nothing has changed"
    commit(talk, "plain", "a", 2, 110)
    assert beat(talk, "waiting", "b", 3).assignment is None
    beat(talk, "waiting", "a", 2)
    back = join(talk, "away", "b", instance_id="i")
    assert [topic.partitions for topic in back.assignment.topic_partitions] == [(0, 1, 2)]
    beat(talk, "away", "b", -2, instance_id="i")
    assert beat(talk, "regex", "a", 2).assignment is None
    beat(talk, "mixed", "a", 2)


@pytest.mark.thorough(guard="tests/golden/test_consumer_groups.py")
def test_consumer_groups_go_from_ottla_to_apache_kafka_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        talk.prepare()
        topic_id = talk.topic_id
        make_groups(talk)
        seen = view(talk)
        talk.close()

    with ApacheKafka(tmp_path / "kafka", PROPERTIES, data_directory=data) as kafka:
        talk = Talk(kafka.bootstrap)
        assert view(talk) == seen
        go_on(talk)
        join(talk, "newer", "a")
        seen = view(talk)
        talk.close()
        assert complaints(kafka.read_log(), ERRORS) == []

    with OttlaNode(tmp_path / "ottla", PROPERTIES, data_directory=data) as node:
        talk = Talk(node.bootstrap)
        talk.topic_id = topic_id
        assert view(talk) == seen
        assert beat(talk, "plain", "a", 2).assignment is None
        assert beat(talk, "newer", "a", 2).assignment is None
        assert join(talk, "away", "c", instance_id="i").member_epoch == 2
        kept = next(topic for topic in beat(
            talk, "waiting", "a", 2, rebalance_timeout_ms=600_000, subscribed_topic_names=(TOPIC,),
            topic_partitions=owned(talk, 0, 1, 2),
        ).assignment.topic_partitions)  # fmt: skip
        assert beat(talk, "waiting", "a", 2, topic_partitions=(kept,)).member_epoch == 3
        rest = beat(talk, "waiting", "b", 3).assignment.topic_partitions
        assert sorted((*kept.partitions, *rest[0].partitions)) == [0, 1, 2]
        seen = view(talk)
        talk.close()
        node.kill()
        node.start()
        talk = Talk(node.bootstrap)
        assert view(talk) == seen
        talk.close()
