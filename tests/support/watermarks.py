"""Where a partition begins and ends, as librdkafka finds it."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

WAIT_S: Final = 60
AGAIN_S: Final = 0.2


def watermarks(consumer: Consumer, topic: str, partition: int = 0) -> tuple[int, int]:
    """Return the first offset of a partition and the one after its last.

    librdkafka asks once. If the leader has just changed, that fails, and the caller has to ask again.
    """
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=WAIT_S
            )
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(AGAIN_S)
        else:
            return found
