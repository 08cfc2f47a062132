"""A lane changes no answer: whatever a producer sends, it is told the same, and the same is in the log."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce_request
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lanes.produce_lane import ProduceLanes
from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.replies import CloseConnection
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.batch import BatchView
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

PRODUCE = api_of(ApiKey.PRODUCE)


def with_checksum(batch: bytearray) -> bytearray:
    """Return a batch whose checksum is right, whatever its records are."""
    view = BatchView(memoryview(batch))
    view.patch_max_timestamp(view.max_timestamp)
    return batch


BATCHES: dict[str, bytes | bytearray] = {
    "good": batch_of(b"value"),
    "longer": batch_of(b"value" * 100, b"another", b"third"),
    "damaged": batch_of(b"value")[:-1] + b"?",
    "transactional": batch_of(
        b"value", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    ),
    "idempotent": batch_of(b"value", producer_id=2, producer_epoch=0, base_sequence=0),
    "out of order": batch_of(b"value", producer_id=2, producer_epoch=0, base_sequence=7),
    "poison": with_checksum(batch_of(b"value")[:-1] + b"\x08"),
    "two": batch_of(b"value") + batch_of(b"value"),
    "empty": b"",
}


class Step(NamedTuple):
    """One request, and what happens to its bytes on the way."""

    version: int
    acks: int
    partition: int
    batch: str
    flip: int | None
    """The place of a byte to spoil, counted from the end of the frame."""


STEPS = st.lists(
    st.builds(
        Step,
        version=st.sampled_from([7, 9, 13]),
        acks=st.sampled_from([1, 1, 1, -1, 0]),
        partition=st.sampled_from([0, 0, 1, 9]),
        batch=st.sampled_from(["good", "good", "longer", *BATCHES]),
        flip=st.none() | st.none() | st.integers(1, 160),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with in_process_node(tmp_path_factory.mktemp("lanes")) as node:
        yield node


names = count()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_an_answer_is_the_same_with_and_without_a_lane(node: Node, steps: list[Step]) -> None:
    number = next(names)
    admin = InProcessClient(node)
    topics = {}
    for name in (f"lane-{number:05}", f"long-{number:05}"):
        topics[name] = create_topic(admin, name, partitions=2)
    lane, long_way = topics
    with_lanes = InProcessClient(node)
    for step in steps:
        # A session that sees only one request never has a lane.
        answers = [
            send(client, step, name, topics[name])
            for client, name in ((with_lanes, lane), (InProcessClient(node), long_way))
        ]
        assert answers[0] == answers[1], step
    for partition in (0, 1):
        assert fetch_all(admin, lane, partition) == fetch_all(admin, long_way, partition)


def send(client: InProcessClient, step: Step, name: str, topic_id: Uuid) -> Any:
    topic = topic_id if step.version >= 13 else name
    request = produce_request(topic, BATCHES[step.batch], step.partition, step.acks)
    frame = bytearray(encode_request(request, PRODUCE, step.version, 77, "producer"))
    if step.flip is not None and step.flip < len(frame) - 60:
        frame[-step.flip] ^= 0x55
    try:
        answer = client.send(frame)
    except (MalformedBytes, CloseConnection) as error:
        return type(error)
    if not answer:
        return None
    correlation_id, response = decode_response(PRODUCE, step.version, answer[4:])
    return correlation_id, [
        (part[:5], part.error_message) for topic in response.responses for part in topic.partition_responses
    ]


def test_lanes_are_really_taken(node: Node) -> None:
    client = InProcessClient(node)
    create_topic(client, "taken", partitions=2)
    for _ in range(3):
        for partition in (0, 1):
            client.ask(produce_request("taken", batch_of(b"v"), partition, acks=1), 9)
    [lanes] = client.session._lanes
    assert isinstance(lanes, ProduceLanes)
    assert len(lanes._lanes) == 2


def test_a_lane_ends_with_its_partition(node: Node) -> None:
    client = InProcessClient(node)
    for expected in (0, 0):
        create_topic(client, "reborn")
        for number in range(4):
            answer = client.ask(produce_request("reborn", batch_of(b"v"), acks=1), 9)
            part = answer.responses[0].partition_responses[0]
            assert (part.error_code, part.base_offset) == (ErrorCode.NONE, expected + number)
        state = DeleteTopicState(name="reborn", topic_id=ZERO_UUID)
        client.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=1000))
        answer = client.ask(produce_request("reborn", batch_of(b"v"), acks=1), 9)
        refused = answer.responses[0].partition_responses[0].error_code
        assert refused is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
