"""Reading topics in tests."""

import time

from ottla.client.consumer.record import ConsumerRecord
from ottla.client.errors import BrokerError
from ottla.client.sync import Consumer
from ottla.model.ids import TopicPartition


def read_topic(bootstrap: str, topic: str, count: int, patience_s: float = 90.0) -> list[ConsumerRecord]:
    """Return all committed records of a topic, as soon as there are so many."""
    where = TopicPartition(topic, 0)
    records: list[ConsumerRecord] = []
    deadline_s = time.monotonic() + patience_s
    with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([where])
        while time.monotonic() < deadline_s:
            records += consumer.poll(timeout_ms=300)
            if len(records) >= count and _is_at_end(consumer, where):
                break
    return records


def _is_at_end(consumer: Consumer, where: TopicPartition) -> bool:
    try:
        return consumer.position(where) >= consumer.end_offsets([where])[where]
    except BrokerError:
        return False
