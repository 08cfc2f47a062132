"""A consumer in a process of its own, so that it can hang, be killed, or get orders.

It is given a description as JSON, and obeys lines on stdin: `pause`, `resume`, `hang`, `commit`, `seek N`,
`commits KIND`, `close`. It prints a line for each record: topic, partition, offset. All kinds of clients
behave the same.
"""

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Position(NamedTuple):
    """A record, as far as the lab cares."""

    topic: str
    partition: int
    offset: int


class Reader(Protocol):
    """A consumer of either kind."""

    def poll(self) -> list[Position]:
        """Return some records, after a tenth of a second at the latest."""

    def commit(self, at: Position | None = None, /) -> None:
        """Commit what was returned, or the offset after one record."""

    def pause(self) -> None:
        """Pause all partitions."""

    def seek(self, offset: int) -> None:
        """Go to an offset in all partitions."""

    def close(self) -> None:
        """Leave the group."""


class ConfluentReader:
    """A member written with confluent-kafka."""

    def __init__(self, topics: list[str], properties: dict[str, Any], assigns: bool = False) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._consumer = Consumer(properties)
        if assigns:
            self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        else:
            self._consumer.subscribe(topics)

    def poll(self) -> list[Position]:
        """Return a record, if there is one."""
        message = self._consumer.poll(0.1)
        if message is None or message.error():
            return []
        return [Position(message.topic() or "", message.partition() or 0, message.offset() or 0)]

    def commit(self, at: Position | None = None) -> None:
        """Commit, if that is allowed."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            if at is None:
                self._consumer.commit(asynchronous=False)
            else:
                place = TopicPartition(at.topic, at.partition, at.offset + 1)
                self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            print(f"# commit failed: {error}", flush=True)

    def pause(self) -> None:
        """Pause all partitions."""
        self._consumer.pause(self._consumer.assignment())

    def seek(self, offset: int) -> None:
        """Go to an offset in all partitions."""
        for partition in self._consumer.assignment():
            partition.offset = offset
            self._consumer.seek(partition)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


class KafkaPythonReader:
    """A member written with kafka-python."""

    def __init__(self, topics: list[str], properties: dict[str, Any], assigns: bool = False) -> None:
        from kafka import KafkaConsumer, TopicPartition

        settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in properties.items()}
        for name, value in settings.items():
            if value in ("true", "false"):
                settings[name] = value == "true"
            elif value.isdecimal():
                settings[name] = int(value)
        self._consumer = KafkaConsumer(**settings)
        if assigns:
            self._consumer.assign([TopicPartition(topic, 0) for topic in topics])
        else:
            self._consumer.subscribe(topics)

    def poll(self) -> list[Position]:
        """Return some records."""
        found = self._consumer.poll(timeout_ms=100, max_records=1)
        return [Position(one.topic, one.partition, one.offset) for some in found.values() for one in some]

    def commit(self, _at: Position | None = None) -> None:
        """Commit, if that is allowed."""
        from kafka.errors import KafkaError

        try:
            self._consumer.commit()
        except KafkaError as error:
            print(f"# commit failed: {error}", flush=True)

    def pause(self) -> None:
        """Pause all partitions."""
        self._consumer.pause(*self._consumer.assignment())

    def seek(self, offset: int) -> None:
        """Go to an offset in all partitions."""
        for where in self._consumer.assignment():
            self._consumer.seek(where, offset)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


class OwnReader:
    """A member written with our own client."""

    def __init__(self, topics: list[str], properties: dict[str, Any], assigns: bool = False) -> None:
        from ottla.client.sync import Consumer
        from ottla.model.ids import TopicPartition

        self._consumer = Consumer(properties=properties)
        if assigns:
            self._consumer.assign([TopicPartition(topic, 0) for topic in topics])
            for topic in topics:
                self._consumer.seek(TopicPartition(topic, 0), 0)
        elif any(topic.startswith("^") for topic in topics):
            self._consumer.subscribe(pattern=topics[0])
        else:
            self._consumer.subscribe(topics)

    def poll(self) -> list[Position]:
        """Return some records."""
        from ottla.client.errors import ClientError

        try:
            records = self._consumer.poll(100, 1)
        except ClientError as error:
            print(f"# poll failed: {error}", flush=True)
            time.sleep(0.1)
            return []
        return [Position(item.topic, item.partition, item.offset) for item in records]

    def commit(self, at: Position | None = None) -> None:
        """Commit, if that is allowed."""
        from ottla.client.errors import ClientError
        from ottla.model.ids import TopicPartition

        try:
            if at is None:
                self._consumer.commit()
            else:
                self._consumer.commit({TopicPartition(at.topic, at.partition): at.offset + 1})
        except ClientError as error:
            print(f"# commit failed: {error}", flush=True)

    def pause(self) -> None:
        """Pause all partitions."""
        self._consumer.pause(*self._consumer.positions())

    def seek(self, offset: int) -> None:
        """Go to an offset in all partitions."""
        for where in self._consumer.positions():
            self._consumer.seek(where, offset)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def run(plan: dict[str, Any], orders: "queue.Queue[str]") -> None:
    """Be a member until told to stop."""
    makers: dict[str, Callable[..., Reader]] = {
        "confluent": ConfluentReader,
        "kafka-python": KafkaPythonReader,
    }
    make = makers.get(plan["client"], OwnReader)
    reader = make(plan["topics"], plan["properties"], plan["assigns"])
    work_s, commits = plan["work_ms"] / 1000, plan["commits"]
    unread: Position | None = None
    print("# joined", flush=True)
    while True:
        order = "" if orders.empty() else orders.get()
        match order.split():
            case ["pause"]:
                reader.pause()
            case ["hang"]:
                time.sleep(3600)
            case ["commit"]:
                reader.commit(unread)
            case ["commits", kind]:
                commits = kind
            case ["seek", number]:
                reader.seek(int(number))
            case ["close"]:
                reader.close()
                return
            case _:
                pass
        for position in reader.poll():
            if position.offset == plan["dies_at"]:
                os._exit(1)
            if work_s:
                time.sleep(work_s)
            print(f"{position.topic} {position.partition} {position.offset}", flush=True)
            unread = position
            if commits == "each":
                reader.commit(position)


def main() -> None:
    """Read the plan and the orders."""
    orders: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            orders.put(line)
        # The lab is gone.
        os._exit(1)

    plan = json.loads(sys.argv[1])
    threading.Thread(target=listen, daemon=True).start()
    run(plan, orders)


if __name__ == "__main__":
    main()
