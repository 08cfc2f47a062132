"""Keys go to the partitions that Apache Kafka's own producer chooses."""

import random

from tests.java.oracle import Oracle

from ottla.client.producer.partitioner import DefaultPartitioner, TopicPartitions


def test_a_thousand_keys_go_where_kafkas_producer_puts_them(oracle: Oracle) -> None:
    rng = random.Random(4)
    # Short keys, which are remembered, and long ones, which are not; every length modulo four; one empty.
    keys = [b"", *(rng.randbytes(rng.choice((*range(1, 40), 64, 65, 1000))) for _ in range(1000))]
    questions = [(key, rng.randint(1, 200)) for key in keys]
    answers = [int(oracle.ask("KeyPartitions", f"{key.hex()} {number}")) for key, number in questions]
    partitioner = DefaultPartitioner(16_384)
    ours = [
        partitioner.choose(TopicPartitions("t", number, range(number), lambda _: 0), key, None)
        for key, number in questions
    ]
    assert ours == answers
