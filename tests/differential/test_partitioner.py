"""Keys go to the partitions that Apache Kafka's own producer chooses."""

import random
import subprocess

from tests.java.jars import compiled, java_command

from ottla.client.producer.partitioner import DefaultPartitioner, TopicPartitions


def test_a_thousand_keys_go_where_kafkas_producer_puts_them() -> None:
    rng = random.Random(4)
    # Short keys, which are remembered, and long ones, which are not; every length modulo four; one empty.
    keys = [b"", *(rng.randbytes(rng.choice((*range(1, 40), 64, 65, 1000))) for _ in range(1000))]
    questions = [(key, rng.randint(1, 200)) for key in keys]
    lines = "".join(f"{key.hex()} {number}\n" for key, number in questions)
    command = java_command(compiled("KeyPartitions.java"), "KeyPartitions")
    answers = subprocess.run(command, input=lines, text=True, capture_output=True, check=True).stdout
    partitioner = DefaultPartitioner(16_384)
    ours = [
        partitioner.choose(TopicPartitions("t", number, range(number), lambda _: 0), key, None)
        for key, number in questions
    ]
    assert ours == [int(answer) for answer in answers.split()]
