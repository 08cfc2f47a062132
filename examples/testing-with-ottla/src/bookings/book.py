"""The application: an order goes in, a booking comes out.

Reading, writing and committing are one transaction, so that an order is booked once, whatever fails.
"""

import json
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

ORDERS = "orders"
BOOKINGS = "bookings"
REJECTED = "rejected"


class Booker:
    """Books the orders of one shop."""

    def __init__(self, bootstrap: str, price_of: Callable[[str], int]) -> None:
        self._price_of = price_of
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "booker",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": "booker",
                # Without it librdkafka 2.16 waits for ever for its coordinator when all brokers were away.
                "metadata.recovery.strategy": "none",
            }
        )
        self._producer.init_transactions(30)
        self._consumer.subscribe([ORDERS])

    def run_until(self, count: int) -> int:
        """Book until `count` orders were taken up. Returns how many had to be tried again."""
        taken = retried = 0
        while taken < count:
            messages = [
                message for message in self._consumer.consume(count - taken, 1.0) if not message.error()
            ]
            if not messages:
                continue
            try:
                self._book(messages)
            except KafkaException:
                self._producer.abort_transaction(30)
                self._go_back_to(messages)
                retried += len(messages)
            else:
                taken += len(messages)
        return retried

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _book(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        for message in messages:
            topic, value = self._decide(message.value())
            self._producer.produce(topic, value, key=message.key())
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()),
            self._consumer.consumer_group_metadata(),
            30,
        )
        self._producer.commit_transaction(30)

    def _go_back_to(self, messages: list[Message]) -> None:
        first: dict[tuple[str, int], int] = {}
        for message in messages:
            where = (message.topic(), message.partition())
            first[where] = min(first.get(where, message.offset()), message.offset())
        for (topic, partition), offset in first.items():
            self._consumer.seek(TopicPartition(topic, partition, offset))

    def _decide(self, value: bytes) -> tuple[str, bytes]:
        try:
            order = json.loads(value)
            total = self._price_of(order["item"]) * order["count"]
        except (ValueError, KeyError):
            return REJECTED, value
        return BOOKINGS, json.dumps({"item": order["item"], "total": total}).encode()
