"""Apache Kafka goes on where Ottla stopped, on the same directory, and Ottla where Apache Kafka did."""

from pathlib import Path

import pytest
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import batch_of, create_topic, fetch_all, produce
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.model.uuid import Uuid
from ottla.records.attributes import Codec
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPICS = {
    "plain": {},
    "small-segments": {"internal.segment.bytes": "2000"},
    "compacted": {"cleanup.policy": "compact"},
}
PRODUCER_ID = 4242


def topic_ids(client: PlainClient) -> dict[str, Uuid]:
    asked = tuple(MetadataRequestTopic(name=name) for name in TOPICS)
    answer = client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
    return {topic.name: topic.topic_id for topic in answer.topics}


def end_offset(client: PlainClient, topic: str) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    ask = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
    offset: int = client.ask(ask).topics[0].partitions[0].offset
    return offset


def write(client: PlainClient, who: str) -> None:
    """Append to every topic, in each compression, and as an idempotent producer."""
    for topic in TOPICS:
        for codec in Codec:
            values = [f"{who} {codec.name} {number}".encode() for number in range(10)]
            answer = produce(client, topic, batch_of(*values, key=who.encode(), codec=codec))
            assert answer.error_code is ErrorCode.NONE


def write_as_producer(client: PlainClient, sequence: int) -> int:
    batch = batch_of(b"once", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence)
    answer = produce(client, "plain", batch)
    assert answer.error_code is ErrorCode.NONE
    return answer.base_offset


def read(client: PlainClient) -> dict[str, list[bytes | None]]:
    return {topic: fetch_all(client, topic) for topic in TOPICS}


def strays(data: Path) -> list[str]:
    """Return the logs that were set aside because the metadata did not know them."""
    return [path.name for path in data.glob("*-stray")]


@pytest.mark.parametrize("ends_cleanly", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.thorough(guard="tests/golden/test_log_directories.py")
def test_directories_go_there_and_back(tmp_path: Path, ends_cleanly: bool) -> None:
    data = tmp_path / "data"
    with OttlaNode(tmp_path / "ottla", data_directory=data) as node:
        with PlainClient(node.bootstrap) as client:
            for topic, configs in TOPICS.items():
                create_topic(client, topic, configs=configs)
            write(client, "ottla")
            first = write_as_producer(client, 0)
            ids, written = topic_ids(client), read(client)
        node.stop() if ends_cleanly else node.kill()

    with ApacheKafka(tmp_path / "kafka", data_directory=data) as kafka:
        with PlainClient(kafka.bootstrap) as client:
            assert topic_ids(client) == ids
            assert read(client) == written
            assert write_as_producer(client, 0) == first, "Apache Kafka knows Ottla's producers"
            second = write_as_producer(client, 1)
            write(client, "kafka")
            written = read(client)
            ends = {topic: end_offset(client, topic) for topic in TOPICS}
        assert strays(data) == []
        kafka.stop() if ends_cleanly else kafka.kill()

    with OttlaNode(tmp_path / "ottla", data_directory=data) as node, PlainClient(node.bootstrap) as client:
        assert topic_ids(client) == ids
        assert {topic: end_offset(client, topic) for topic in TOPICS} == ends
        assert read(client) == written
        assert write_as_producer(client, 1) == second, "Ottla knows Apache Kafka's producers"
        write(client, "ottla again")
        assert strays(data) == []
