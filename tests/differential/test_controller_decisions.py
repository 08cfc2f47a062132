"""Let Apache Kafka go through a life with crashes, and decide everything again ourselves."""

from pathlib import Path

from tests.controller_replay import compare_decisions
from tests.golden.metadata_logs import read_log
from tests.java.apache_kafka import ApacheKafka
from tests.plain_client import PlainClient

from ottla.metadata.image import EMPTY_IMAGE
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


def test_a_broker_that_was_killed_is_treated_as_in_kafka(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    with kafka:
        with PlainClient(kafka.bootstrap) as client:
            topics = tuple(
                CreatableTopic(name=name, num_partitions=3, replication_factor=1, assignments=(), configs=())
                for name in ("a", "b")
            )
            answer = client.ask(CreateTopicsRequest(topics=topics))
            assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}
        kafka.kill()
        kafka.start()
        kafka.kill()
        kafka.start()

    found = list(compare_decisions(EMPTY_IMAGE, read_log(kafka.data_directory / "__cluster_metadata-0")))

    again = [one for one in found if one.what == "registers again"]
    assert [one.record_count for one in again] == [7, 7], "all six partitions lost their leader, both times"
    assert {one.what for one in found} >= {"is unfenced", "begins to stop", "is fenced"}
    for one in found:
        assert not one.ours, f"only we write at {one.offset}, where a broker {one.what}"
        assert not one.theirs, f"only Kafka writes at {one.offset}, where a broker {one.what}"
