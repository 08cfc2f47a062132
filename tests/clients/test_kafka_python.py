"""kafka-python: produces, reads what was assigned, seeks."""

import pytest
from tests.support.ottla_node import OttlaNode


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_produced_is_read(ottla_node: OttlaNode) -> None:
    # It reads its schemas by a deprecated function when it is imported, which must not count as our warning.
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=ottla_node.bootstrap, acks="all")
    try:
        sent = [producer.send("kafka-python", b"%d" % number, partition=0) for number in range(100)]
        assert [future.get(30).offset for future in sent] == list(range(100))
    finally:
        producer.close()

    consumer = KafkaConsumer(bootstrap_servers=ottla_node.bootstrap, group_id=None, enable_auto_commit=False)
    try:
        partition = TopicPartition("kafka-python", 0)
        consumer.assign([partition])
        consumer.seek(partition, 40)
        values: list[bytes] = []
        while len(values) < 60:
            for records in consumer.poll(30_000).values():
                values += [record.value for record in records]
        assert values == [b"%d" % number for number in range(40, 100)]
        assert consumer.end_offsets([partition]) == {partition: 100}
    finally:
        consumer.close()
