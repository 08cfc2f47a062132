"""A member of a group in a process of its own, so that it can be killed. It writes down what it does.

    python -m tests.clients.group_worker BOOTSTRAP TOPIC GROUP FILE [name=value ...]

Each line of FILE begins with a time. Then, for a partition and an offset:

    assigned   the member got the partition, and will go on at the offset
    processed  the record at the offset was processed
    committed  the coordinator has acknowledged a commit of the offset
    revoked    the member gives the partition back

Records are processed one by one, and committed after that, now and then. SIGTERM makes the member leave.
Further arguments are settings of librdkafka.
"""

import signal
import sys
from pathlib import Path
from time import monotonic_ns
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

COMMIT_EVERY = 20


class Worker:
    """Consumes until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, group: str, path: Path, settings: dict[str, str]) -> None:
        self._file = path.open("a", buffering=1)
        self._uncommitted: dict[int, int] = {}
        self._unprocessed = 0
        self.is_stopped = False
        is_new_protocol = settings.get("group.protocol") == "consumer"
        # In the new protocol the coordinator sets the times.
        times = {} if is_new_protocol else {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **times,
                **settings,
            }
        )
        strategy = settings.get("partition.assignment.strategy")
        self._is_cooperative = is_new_protocol or strategy == "cooperative-sticky"
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        self._topic = topic

    def run(self) -> None:
        while not self.is_stopped:
            message = self._consumer.poll(0.2)
            if message is None or message.error():
                self._commit()
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None, "it is a record"
            assert offset is not None, "it is a record"
            self._note("processed", partition, offset)
            self._uncommitted[partition] = offset + 1
            self._unprocessed += 1
            if self._unprocessed >= COMMIT_EVERY:
                self._commit()
        self._commit()
        self._consumer.close()

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        committed = consumer.committed(partitions, 20)
        for partition in committed:
            self._note("assigned", partition.partition, max(partition.offset, 0))
            partition.offset = max(partition.offset, 0)
        if self._is_cooperative:
            consumer.incremental_assign(committed)
        else:
            consumer.assign(committed)

    def _revoked(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._lost(consumer, partitions)

    def _lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._uncommitted.pop(partition.partition, None)
            self._note("revoked", partition.partition, 0)
        if self._is_cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _commit(self) -> None:
        if not self._uncommitted:
            return
        offsets = [
            TopicPartition(self._topic, number, offset) for number, offset in self._uncommitted.items()
        ]
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            # A rebalance, or the coordinator is away: what is not committed will be processed again.
            return
        for partition in done or ():
            if partition.error is None:
                self._note("committed", partition.partition, partition.offset)
        self._uncommitted.clear()
        self._unprocessed = 0

    def _note(self, what: str, partition: int, offset: int) -> None:
        self._file.write(f"{monotonic_ns()} {what} {partition} {offset}\n")


def main() -> None:
    bootstrap, topic, group, path, *settings = sys.argv[1:]
    worker = Worker(bootstrap, topic, group, Path(path), dict(setting.split("=", 1) for setting in settings))

    def stop(_number: int, _frame: FrameType | None) -> None:
        worker.is_stopped = True

    signal.signal(signal.SIGTERM, stop)
    worker.run()


if __name__ == "__main__":
    main()
