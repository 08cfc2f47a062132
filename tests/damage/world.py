"""A data directory with something of everything, and the truth about it."""

import shutil
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from tests.support.data_plane import create_topic
from tests.support.ottla_node import KEEPS_OLD_RECORDS, OttlaNode
from tests.support.plain_client import PlainClient

TOPICS = {
    "plain": (2, {"internal.segment.bytes": "3000"}),
    "squeezed": (1, {"internal.segment.bytes": "3000", "compression.type": "lz4"}),
    "compacted": (1, {"internal.segment.bytes": "3000", "cleanup.policy": "compact"}),
    "paid": (1, {"internal.segment.bytes": "3000"}),
}
GROUP = "readers"
SETTINGS = {
    **KEEPS_OLD_RECORDS,
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}

Log = tuple[str, int]


class Truth(NamedTuple):
    """What clients were told."""

    acknowledged: dict[Log, dict[int, bytes]]
    # Of transactions that were aborted: nobody who reads committed records may see them.
    aborted: dict[Log, set[bytes]]
    ends: dict[Log, int]
    starts: dict[Log, int]
    committed: dict[Log, int]


class World(NamedTuple):
    """Directories of a node that does not run."""

    directories: list[Path]
    is_clean: bool
    truth: Truth

    def copy_to(self, root: Path) -> "World":
        """Copy it, so that the copy can be damaged."""
        copies = [root / one.name for one in self.directories]
        for old, new in zip(self.directories, copies, strict=True):
            shutil.copytree(old, new)
        return self._replace(directories=copies)

    def settings(self) -> dict[str, str]:
        """Return what a node is started with."""
        return {**SETTINGS, "log.dirs": ",".join(map(str, self.directories))}


def make_world(root: Path, rng: Random) -> World:
    """Let a node write everything, and end it."""
    count = rng.choice((1, 1, 2))
    world = World([root / f"data{number}" for number in range(count)], rng.random() < 0.5, _no_truth())
    node = OttlaNode(root, world.settings())
    node.start()
    try:
        _write(node.bootstrap, world.truth, rng)
        if rng.random() < 0.5:
            # Half of it after a restart: then there are segments and snapshots of an earlier run.
            node.stop()
            node.start()
            _write(node.bootstrap, world.truth, rng)
    finally:
        if world.is_clean:
            node.stop()
        else:
            node.kill()
    return world


def _no_truth() -> Truth:
    return Truth({}, {}, {}, {}, {})


def _write(bootstrap: str, truth: Truth, rng: Random) -> None:
    with PlainClient(bootstrap) as client:
        if not truth.acknowledged:
            for name, (partitions, configs) in TOPICS.items():
                create_topic(client, name, partitions, configs)
    _write_plain(bootstrap, truth, rng)
    _write_transactions(bootstrap, truth, rng)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    places = [Place("plain", number, rng.randrange(1, truth.ends["plain", number])) for number in range(2)]
    for future in admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, places)]).values():
        future.result()
    truth.committed.update({(place.topic, place.partition): place.offset for place in places})
    if rng.random() < 0.5:
        place = Place("plain", 0, rng.randrange(truth.ends["plain", 0]))
        for deleted in admin.delete_records([place]).values():
            truth.starts["plain", 0] = deleted.result().low_watermark


def _taker(truth: Truth, failures: list[Any]) -> Any:
    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(error)
            return
        log = (message.topic(), message.partition())
        truth.acknowledged.setdefault(log, {})[message.offset()] = message.value()
        truth.ends[log] = max(truth.ends.get(log, 0), message.offset() + 1)

    return delivered


def _write_plain(bootstrap: str, truth: Truth, rng: Random) -> None:
    failures: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 5, "linger.ms": 1}
    )
    for number in range(rng.randrange(100, 250)):
        topic = rng.choice(("plain", "plain", "squeezed", "compacted"))
        partition = rng.randrange(TOPICS[topic][0])
        value = b"%s %d %s" % (topic.encode(), number, rng.randbytes(rng.randrange(60)).hex().encode())
        producer.produce(topic, value, b"key %d" % rng.randrange(20), partition, _taker(truth, failures))
    assert producer.flush(60) == 0
    assert not failures, failures


def _write_transactions(bootstrap: str, truth: Truth, rng: Random) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payer", "linger.ms": 1})
    producer.init_transactions(60)
    for number in range(rng.randrange(5, 15)):
        taken = _no_truth()
        failures: list[Any] = []
        producer.begin_transaction()
        for step in range(rng.randrange(1, 8)):
            value = b"paid %d %d %s" % (number, step, rng.randbytes(30).hex().encode())
            producer.produce("paid", value, on_delivery=_taker(taken, failures))
        assert producer.flush(60) == 0
        assert not failures, failures
        if rng.random() < 0.5:
            producer.commit_transaction(60)
            for log, values in taken.acknowledged.items():
                truth.acknowledged.setdefault(log, {}).update(values)
        else:
            producer.abort_transaction(60)
            for log, values in taken.acknowledged.items():
                truth.aborted.setdefault(log, set()).update(values.values())
        for log, end in taken.ends.items():
            # Its marker lies behind it.
            truth.ends[log] = max(truth.ends.get(log, 0), end + 1)
