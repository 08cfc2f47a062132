"""A large request keeps nobody waiting, is answered as a small one would be, and takes bounded memory."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.data_plane import batch_of, create_topic, produce_request
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.fetch.fetch_session import FetchSessions
from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving import large_requests
from ottla.broker.serving.dispatch import PENDING
from ottla.broker.serving.routes import Route
from ottla.wire.apis import api_of
from ottla.wire.declare import replace, spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages import fetch, list_offsets, metadata, offset_commit, offset_fetch, produce
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

PARTITIONS = 40


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with in_process_node(tmp_path_factory.mktemp("large"), {"auto.create.topics.enable": "false"}) as node:
        client = InProcessClient(node)
        create_topic(client, "t", PARTITIONS)
        create_topic(client, "other", 1)
        create_topic(client, "written", PARTITIONS)
        client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
        yield node


def requests() -> dict[str, Any]:
    names = tuple(f"name-{number}" for number in range(600))
    return {
        "DescribeGroups": DescribeGroupsRequest(groups=names),
        "FindCoordinator": FindCoordinatorRequest(key_type=0, coordinator_keys=names),
        "DeleteGroups": DeleteGroupsRequest(group_names=names),
        "Metadata": metadata.MetadataRequest(
            topics=tuple(metadata.MetadataRequestTopic(name=name) for name in (*names, "t"))
        ),
        "DescribeConfigs": DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
                for name in ("t", "other", *names[:300])
            )
        ),
        "ListOffsets": list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=tuple(
                        list_offsets.ListOffsetsPartition(partition_index=number, timestamp=-1)
                        for number in range(600 if name == "t" else 3)
                    ),
                )
                for name in ("t", *names[:100])
            ),
        ),
        "OffsetFetch": offset_fetch.OffsetFetchRequest(
            groups=tuple(
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=group,
                    topics=(
                        offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=tuple(range(400))),
                        offset_fetch.OffsetFetchRequestTopics(name="other", partition_indexes=(0, 1)),
                    ),
                )
                for group in names[:3]
            )
        ),
        "OffsetCommit": offset_commit.OffsetCommitRequest(
            group_id="committing",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=tuple(
                offset_commit.OffsetCommitRequestTopic(
                    name=name,
                    partitions=tuple(
                        offset_commit.OffsetCommitRequestPartition(
                            partition_index=number, committed_offset=number, committed_metadata=""
                        )
                        for number in range(600)
                    ),
                )
                for name in ("t", "missing")
            ),
        ),
        "Fetch": fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=-1,
            topics=tuple(
                fetch.FetchTopic(
                    topic=name,
                    partitions=tuple(
                        fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=100)
                        for number in range(1500)
                    ),
                )
                for name in ("t", "missing")
            ),
            forgotten_topics_data=(),
        ),
    }


VERSIONS = {"OffsetFetch": 9, "OffsetCommit": 9, "Fetch": 12, "Metadata": 9}


class Watched:
    """A large request on its way, and a polite client that asks something after each turn."""

    def __init__(self, node: Node, request: Any, version: int | None = None) -> None:
        self.node = node
        key = spec_of(type(request)).api_key
        assert key is not None
        self.api = api_of(key)
        self.version = self.api.stable_versions.last if version is None else version
        self.frame = memoryview(bytearray(encode_request(request, self.api, self.version, 1, "large")))
        self.late: list[list[Any]] = []
        self.client = InProcessClient(node)
        self.client.session._answer_later = self.late.append
        self.polite = InProcessClient(node)
        self.polite_answers = 0

    def run(self) -> Any:
        """Return the answer."""
        pieces: Any = self.client.session.receive(self.frame[4:])
        while pieces is PENDING:
            self.polite.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"))
            self.polite_answers += 1
            loop_of(self.node).run_until_complete(asyncio.sleep(0))
            if self.client._failures:
                raise self.client._failures.pop()
            if self.late:
                pieces = self.late.pop()
        if hasattr(pieces, "release"):
            pieces.release()
        frame = b"".join(pieces)
        return decode_response(self.api, self.version, frame[4:])[1]


@pytest.fixture(autouse=True)
def turns_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every turn end after one step, however fast the machine is: then turns can be counted."""
    monkeypatch.setattr("ottla.runtime.turns.TURN_NS", 100)
    monkeypatch.setattr("ottla.broker.serving.cuts.Pace.took", lambda *_: None)


@pytest.mark.parametrize("name", requests())
def test_others_are_served_while_a_large_request_is(node: Node, name: str) -> None:
    watched = Watched(node, requests()[name], VERSIONS.get(name))
    watched.run()
    assert watched.polite_answers >= 5
    assert node.broker.turns.held_bytes == 0
    assert len(node.broker.turns) == 0


@pytest.mark.parametrize("name", requests())
def test_a_large_request_is_answered_as_if_it_were_small(
    node: Node, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = VERSIONS.get(name)
    in_parts = Watched(node, requests()[name], version).run()
    monkeypatch.setattr(Route, "find_cut", lambda *_: None)
    monkeypatch.setattr("ottla.broker.apis.records.fetch._AT_ONCE", 1_000_000)
    at_once = Watched(node, requests()[name], version).run()
    if name in ("Metadata", "OffsetCommit"):
        # Topics and partitions come in another order there, which means nothing.
        assert sorted(map(_sorted, in_parts.topics)) == sorted(map(_sorted, at_once.topics))
        in_parts, at_once = (replace(one, topics=()) for one in (in_parts, at_once))
    assert in_parts == at_once


def _sorted(topic: Any) -> Any:
    return topic.name, topic.error_code if hasattr(topic, "error_code") else 0, sorted(topic.partitions)


def test_a_large_produce_appends_to_all_partitions(node: Node) -> None:
    def one(number: int) -> produce.PartitionProduceData:
        return produce.PartitionProduceData(
            partition_index=number % PARTITIONS, records=memoryview(bytearray(batch_of(b"v")))
        )

    data = produce.TopicProduceData(
        name="written", partition_data=tuple(one(number) for number in range(400))
    )
    ask = replace(produce_request("written", batch_of(b"v")), topic_data=(data,))
    watched = Watched(node, ask, 9)
    (topic,) = watched.run().responses
    assert {answer.error_code for answer in topic.partition_responses} == {ErrorCode.NONE}
    offsets = [answer.base_offset for answer in topic.partition_responses]
    assert offsets == [number // PARTITIONS + offsets[0] for number in range(400)]
    assert watched.polite_answers >= 3


def test_topics_that_are_named_twice_are_not_created(node: Node) -> None:
    def topic(name: str) -> CreatableTopic:
        return CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())

    names = [f"new-{number}" for number in range(60)]
    asked = (topic("twice"), *map(topic, names), topic("twice"))
    answer = Watched(node, CreateTopicsRequest(topics=asked, timeout_ms=1000)).run()
    codes = {one.name: one.error_code for one in answer.topics}
    assert codes.pop("twice") is ErrorCode.INVALID_REQUEST
    assert codes == dict.fromkeys(names, ErrorCode.NONE)


def test_a_request_with_too_many_elements_is_refused_before_it_is_served(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(node, DescribeGroupsRequest(groups=("",) * 20_000))
    route = node.broker.routes.find(watched.api.key, watched.version)
    assert route is not None
    assert route.elements_max * route.element_bytes <= large_requests.COST_BYTES_MAX
    monkeypatch.setattr(route, "elements_max", 10_000)
    monkeypatch.setattr(route, "handler", None)
    with pytest.raises(MalformedBytes, match="at most 10000 are allowed"):
        watched.run()
    assert node.broker.turns.held_bytes == 0


def test_an_answer_that_grows_too_large_ends_the_connection(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_requests, "ANSWER_BYTES_MAX", 1_000)
    with pytest.raises(MalformedBytes, match="more than 1000 bytes"):
        Watched(node, requests()["DescribeConfigs"]).run()
    assert node.broker.turns.held_bytes == 0


def test_nothing_is_held_for_a_client_that_is_gone(node: Node) -> None:
    watched = Watched(node, requests()["DescribeGroups"])
    assert watched.client.session.receive(watched.frame[4:]) is PENDING
    loop_of(node).run_until_complete(asyncio.sleep(0))
    assert node.broker.turns.held_bytes > 0
    watched.client.session.close()
    assert node.broker.turns.held_bytes == 0
    assert len(node.broker.turns) == 0


def test_a_large_fetch_session_ends_with_its_connection(node: Node) -> None:
    ask = requests()["Fetch"]
    many = tuple(
        fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1)
        for number in range(10_500)
    )
    ask = replace(ask, session_epoch=0, topics=(fetch.FetchTopic(topic="t", partitions=many),))
    before = len(node.broker.fetch_sessions)
    watched = Watched(node, ask, 12)
    assert watched.run().session_id > 0
    assert len(node.broker.fetch_sessions) == before + 1
    watched.client.session.close()
    assert len(node.broker.fetch_sessions) == before


def test_sessions_are_bounded_by_their_partitions() -> None:
    sessions = FetchSessions(1000, iter(range(1, 1000)).__next__)
    sessions.partitions_max = 1000

    def begin(size: int, now_ms: int) -> Any:
        asked = [
            (("t", number), fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1))
            for number in range(size)
        ]
        return sessions.begin(asked, 12, False, now_ms)

    assert begin(600, 0) is not None
    assert begin(600, 0) is None
    # Nobody has used the first for long.
    assert begin(600, 1_000_000) is not None
    assert sessions.count_partitions() == 600
