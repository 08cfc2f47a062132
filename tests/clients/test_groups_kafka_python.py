"""kafka-python in a group: it commits, and goes on where it was."""

from typing import Any

import pytest
from tests.support.ottla_node import OttlaNode

TOPIC = "kafka-python-group"
RECORDS = 300


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_member_commits_and_goes_on(ottla_node: OttlaNode) -> None:
    # It reads its schemas by a deprecated function when it is imported, which must not count as our warning.
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=ottla_node.bootstrap)
    try:
        for first, count in ((0, RECORDS), (RECORDS, 20)):
            numbers = list(range(first, first + count))
            for number in numbers:
                producer.send(TOPIC, b"%d" % number)
            producer.flush()
            assert sorted(read(kafka, ottla_node, count)) == numbers
    finally:
        producer.close()


def read(kafka: Any, node: OttlaNode, count: int) -> list[int]:
    """Be the only member for a while. Return what came."""
    consumer = kafka.KafkaConsumer(
        TOPIC, bootstrap_servers=node.bootstrap, group_id=TOPIC, auto_offset_reset="earliest",
        enable_auto_commit=False,
    )  # fmt: skip
    try:
        values: list[int] = []
        while len(values) < count:
            for records in consumer.poll(30_000).values():
                values += [int(record.value) for record in records]
        positions = {where: consumer.position(where) for where in consumer.assignment()}
        consumer.commit()
        assert {where: consumer.committed(where) for where in positions} == positions
        return values
    finally:
        consumer.close()
