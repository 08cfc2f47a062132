"""A commit that is repeated with other offsets gets the answer, and leaves the records, of any other."""

from pathlib import Path

import pytest
from tests.support.data_plane import create_topic
from tests.support.group_requests import commit_request, fetch_request, join_request
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.lanes.commit_lane import FRAME_BYTES_MAX, LANES_MAX, CommitLanes
from ottla.broker.lifecycle.startup import Node
from ottla.model.uuid import ZERO_UUID
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.security.principal import Principal
from ottla.storage.read import ReadLimit
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import encode_request
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest

TOPIC = "repeated"
GROUP = "group"
FIRST_VERSION_WITH_LANES = 5
TOPIC_IDS_FROM = 10


def send(client: InProcessClient, request: OffsetCommitRequest, version: int, correlation_id: int) -> bytes:
    return client.send(
        encode_request(request, api_of(ApiKey.OFFSET_COMMIT), version, correlation_id, "client")
    )


def commit_codes(client: InProcessClient, request: OffsetCommitRequest, version: int = 9) -> list[ErrorCode]:
    return [part.error_code for part in client.ask(request, version).topics[0].partitions]


def lanes_of(client: InProcessClient) -> CommitLanes:
    [lanes] = client.session._lanes
    assert isinstance(lanes, CommitLanes)
    return lanes


def has_lane(client: InProcessClient) -> bool:
    return bool(client.session._lanes) and bool(lanes_of(client)._lanes)


def new_client(node: Node) -> InProcessClient:
    client = InProcessClient(node)
    create_topic(client, TOPIC, 20)
    client.ask(FindCoordinatorRequest(key=GROUP), 3)
    return client


def written(node: Node) -> list[CoordinatorRecord]:
    """Return what was committed, but for the time."""
    found = []
    for shard in node.broker.groups.coordinator.shards:
        partition = node.broker.partitions.find(GROUP_RECORDS.topic, shard.partition)
        assert partition is not None
        log = partition.log
        if log.log_end_offset:
            data = log.read(log.log_start_offset, 1 << 20, ReadLimit.LOG_END).read()
            for batch in iter_batches(memoryview(data)):
                assert batch.crc_is_valid()
                for record in iter_batch_records(batch):
                    assert record.key is not None
                    assert record.value is not None
                    decoded = GROUP_RECORDS.decode(record.key, record.value)
                    assert isinstance(decoded, CoordinatorRecord)
                    encoded = GROUP_RECORDS.encode_value(decoded.value, decoded.value_version)
                    assert encoded == record.value
                    found.append(decoded._replace(value=replace(decoded.value, commit_timestamp=0)))
    return found


@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("version", [4, 5, 8, 9, 10])
def test_the_short_way_answers_and_writes_as_the_long_way_does(
    tmp_path: Path, version: int, partitions: int
) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        topic_id = node.broker.image.topics.names[TOPIC]
        by_id = {"topic_id": topic_id, "topic": ""} if version >= TOPIC_IDS_FROM else {"topic": TOPIC}
        for turn in range(5):
            offsets = {number: 1_000_000 * turn + number for number in range(partitions)}
            request = commit_request(GROUP, offsets, **by_id)
            # Who has just connected has no lane.
            expected = send(InProcessClient(node), request, version, turn)
            assert send(client, request, version, turn) == expected
        assert has_lane(client) == (version >= FIRST_VERSION_WITH_LANES)

        records = written(node)
        for number, (key, value, _) in enumerate(records):
            turn, index = number // (2 * partitions), number % partitions
            assert (key.group, key.topic, key.partition) == (GROUP, TOPIC, index)
            assert (value.offset, value.metadata, value.topic_id) == (
                1_000_000 * turn + index,
                "note",
                topic_id,
            )
        assert len(records) == 5 * 2 * partitions
        fetched = client.ask(fetch_request(GROUP, topics={TOPIC: (partitions - 1,)}), 9)
        assert fetched.groups[0].topics[0].partitions[0].committed_offset == 4_000_000 + partitions - 1


def test_a_lane_is_of_one_principal(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for offset in range(4):
            assert commit_codes(client, commit_request(GROUP, {0: offset}, topic=TOPIC)) == [ErrorCode.NONE]
            if offset == 2:
                before = set(lanes_of(client)._lanes.values())
        assert before == set(lanes_of(client)._lanes.values())
        client.session.context.principal = Principal("User", "another")
        assert commit_codes(client, commit_request(GROUP, {0: 5}, topic=TOPIC)) == [ErrorCode.NONE]
        assert before.isdisjoint(lanes_of(client)._lanes.values())


def test_who_may_not_commit_any_more_is_refused(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as node:
        client = new_client(node)
        for offset in range(3):
            assert commit_codes(client, commit_request(GROUP, {0: offset}, topic=TOPIC)) == [ErrorCode.NONE]
        assert has_lane(client)
        member = InProcessClient(node)
        member_id = member.ask(join_request(GROUP)).member_id
        assert member.ask(join_request(GROUP, member_id)).error_code is ErrorCode.NONE

        refused = commit_codes(client, commit_request(GROUP, {0: 9}, topic=TOPIC))
        assert refused == [ErrorCode.UNKNOWN_MEMBER_ID]
        fetched = client.ask(fetch_request(GROUP, topics={TOPIC: (0,)}), 9).groups[0].topics[0].partitions[0]
        assert fetched.committed_offset == 2


def test_a_topic_that_is_gone_is_refused(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for offset in range(3):
            commit_codes(client, commit_request(GROUP, {0: offset}, topic=TOPIC))
        assert has_lane(client)
        topic = DeleteTopicState(name=TOPIC, topic_id=ZERO_UUID)
        client.ask(DeleteTopicsRequest(topics=(topic,), timeout_ms=60_000))

        refused = commit_codes(client, commit_request(GROUP, {0: 9}, topic=TOPIC))
        assert refused == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_commit_of_somebody_else_of_the_same_size_is_its_own(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for offset in range(3):
            commit_codes(client, commit_request("one", {0: offset}, topic=TOPIC))
        assert has_lane(client)
        assert commit_codes(client, commit_request("two", {0: 7}, topic=TOPIC)) == [ErrorCode.NONE]
        groups = [(record.key.group, record.value.offset) for record in written(node)]
        assert sorted(groups) == [("one", 0), ("one", 1), ("one", 2), ("two", 7)]


def test_a_name_that_looks_like_a_mark_is_written_as_it_is(tmp_path: Path) -> None:
    look_alike = "\x01\x02\x03\x04\x05\x06\x07\x00"
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for offset in range(5):
            assert commit_codes(client, commit_request(look_alike, {0: offset}, topic=TOPIC)) == [
                ErrorCode.NONE
            ]
        assert not has_lane(client)
        keys = [(record.key.group, record.key.topic, record.value.offset) for record in written(node)]
        assert keys == [(look_alike, TOPIC, offset) for offset in range(5)]


def test_a_note_that_may_be_too_long_is_looked_at_each_time(tmp_path: Path) -> None:
    with in_process_node(tmp_path, {"offset.metadata.max.bytes": "10"}) as node:
        client = new_client(node)
        request = commit_request(GROUP, {0: 1}, topic=TOPIC, metadata="far too long")
        for _ in range(4):
            assert commit_codes(client, request) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        assert not has_lane(client)


def test_a_connection_remembers_few_commits(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for length in range(1, 20):
            for offset in range(3):
                request = commit_request(GROUP, {0: offset}, topic=TOPIC, metadata="n" * length)
                assert commit_codes(client, request) == [ErrorCode.NONE]
            assert has_lane(client)
        huge = commit_request(GROUP, {0: 1}, topic=TOPIC, metadata="n" * FRAME_BYTES_MAX)
        commit_codes(client, huge)
        lanes = lanes_of(client)
        assert len(lanes._seen) <= LANES_MAX
        assert max(lanes._seen) <= FRAME_BYTES_MAX


def test_a_shard_that_fails_refuses_who_waits(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = new_client(node)
        for offset in range(3):
            commit_codes(client, commit_request(GROUP, {0: offset}, topic=TOPIC))
        assert has_lane(client)
        shard = node.broker.groups.coordinator.shards.find(GROUP)
        assert not isinstance(shard, ErrorCode)
        loop_of(node).call_soon(shard.fail)
        assert commit_codes(client, commit_request(GROUP, {0: 9}, topic=TOPIC)) == [ErrorCode.NOT_COORDINATOR]
