"""The bytes of a batch say who sent it, once: what was sent before keeps its numbers."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import BrokerError
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.produce_requests import ProduceRequests
from ottla.client.producer.settings import ProducerSettings
from ottla.client.topology import PartitionView, TopicView, Topology
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.wire.error_code import ErrorCode

P0, P1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
IDS = {"t": Uuid(b"the topic's id.."), "other": Uuid(b"the other's id..")}


def _requests(
    *, transactional_id: str | None = None, is_v2: bool = True, **settings: str
) -> tuple[ProduceRequests, ProducerIdentity]:
    given = {
        "bootstrap.servers": "nowhere:1",
        **{key.replace("_", "."): text for key, text in settings.items()},
    }
    parts = {0: PartitionView(0, 0, 0, (0,), (0,), ErrorCode.NONE)}
    topics = {name: TopicView(name, topic_id, False, parts, ErrorCode.NONE) for name, topic_id in IDS.items()}
    cluster: Any = SimpleNamespace(topology=Topology({}, topics, {}, -1, "c"))
    gate: Any = SimpleNamespace(transactional_id=transactional_id, is_v2=is_v2)
    identity = ProducerIdentity()
    return ProduceRequests(cluster, ProducerSettings.of(given), identity, gate), identity


def _batch(where: TopicPartition, count: int = 1) -> Batch:
    batch = Batch(where, 0.0)
    batch.records += [(number, 5, b"k", b"v", ()) for number in range(count)]
    return batch


def _header(batch: Batch) -> Any:
    assert batch.encoded is not None
    (view,) = iter_batches(memoryview(batch.encoded))
    return view.header


def test_a_producer_without_idempotence_has_no_numbers() -> None:
    requests, identity = _requests(enable_idempotence="false")
    identity.producer_id, identity.producer_epoch = 7, 1
    batch = _batch(P0)
    requests.encode(batch)
    header = _header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    batch.renumber()
    requests.encode(batch)
    assert _header(batch).base_sequence == -1


def test_each_partition_is_numbered_for_itself_and_a_batch_that_was_encoded_stays() -> None:
    requests, identity = _requests()
    identity.producer_id, identity.producer_epoch = 7, 1
    batches = [_batch(P0, 3), _batch(P1, 2), _batch(P0, 1)]
    for batch in batches:
        requests.encode(batch)
    assert [_header(batch).base_sequence for batch in batches] == [0, 0, 3]
    assert {(_header(batch).producer_id, _header(batch).producer_epoch) for batch in batches} == {(7, 1)}
    before = bytes(batches[0].encoded or b"")
    requests.encode(batches[0])
    assert bytes(batches[0].encoded or b"") == before
    assert not _header(batches[0]).is_transactional


@pytest.mark.parametrize(
    ("transactional_id", "is_v2", "at_most"), [(None, False, None), ("t", True, None), ("t", False, 11)]
)
def test_transactions_of_the_first_version_speak_an_older_one(
    transactional_id: str | None, is_v2: bool, at_most: int | None
) -> None:
    requests, identity = _requests(transactional_id=transactional_id, is_v2=is_v2)
    identity.producer_id, identity.producer_epoch = 7, 1
    asked: list[int | None] = []

    def version_for(_kind: type[Any], most: int | None = None) -> int:
        asked.append(most)
        return 9

    connection: Any = SimpleNamespace(version_for=version_for)
    assert requests.version_for(connection) == 9
    assert asked == [at_most]
    batch = _batch(P0)
    requests.encode(batch)
    assert _header(batch).is_transactional is (transactional_id is not None)


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_named_or_have_ids_and_each_stands_once(version: int) -> None:
    requests, _ = _requests(enable_idempotence="false", acks="1", request_timeout_ms="1234")
    batches = [_batch(P0), _batch(OTHER), _batch(P1)]
    for batch in batches:
        requests.encode(batch)
    request = requests.make(batches, version)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (1, 1234, None)
    first, second = request.topic_data
    assert [part.partition_index for part in first.partition_data] == [0, 1]
    assert [part.partition_index for part in second.partition_data] == [0]
    if version >= 13:
        assert (first.topic_id, second.topic_id) == (IDS["t"], IDS["other"])
    else:
        assert (first.name, second.name) == ("t", "other")


def test_a_topic_that_is_gone_is_told() -> None:
    requests, _ = _requests(enable_idempotence="false")
    batch = _batch(TopicPartition("gone", 0))
    requests.encode(batch)
    with pytest.raises(BrokerError, match="topic 'gone' no longer exists"):
        requests.make([batch], 13)
