"""What must hold of a cluster after each test in which all of its nodes run in the end.

- Replica equality: when all replicas are in sync, they are the same bytes.
- Offset accounting: in a log, each batch begins where the one before it ends. Leader epochs never go back.
- Watermarks: the high watermark has come to the end of the log, and nothing was cut off below it.

Internal topics are left out: each broker compacts them when it likes. So are topics that are compacted.
"""

from typing import TYPE_CHECKING

from confluent_kafka import Consumer
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]
from tests.support.watermarks import watermarks

from ottla.records.batch import iter_batches

if TYPE_CHECKING:
    from tests.support.mixed_cluster import MixedCluster


def find_wrong(cluster: "MixedCluster") -> str | None:
    """Return what is wrong at the moment, or None. It may only be that replicas have not caught up."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "checks", "log_level": 0})
    try:
        return _find_wrong(cluster, consumer)
    finally:
        consumer.close()


def _find_wrong(cluster: "MixedCluster", consumer: Consumer) -> str | None:
    topics = cluster.admin.list_topics(timeout=30).topics
    plain = [name for name in topics if not name.startswith("__") and not _is_compacted(cluster, name)]
    found = {name: topics[name].partitions for name in plain}
    for name, partitions in found.items():
        for number, partition in partitions.items():
            where = f"{name}-{number}"
            if len(partition.isrs) < len(partition.replicas):
                return f"of the replicas {partition.replicas} of {where}, {partition.isrs} are in sync"
            logs = {one: cluster[one].log_bytes(name, number) for one in partition.replicas}
            if len(set(logs.values())) != 1:
                sizes = {one: len(log) for one, log in logs.items()}
                return f"the replicas of {where} differ: their sizes are {sizes}"
            start, end = account_for(where, logs[partition.replicas[0]])
            ends = watermarks(consumer, name, number)
            # A log of which everything was deleted goes on where it ended.
            if logs[partition.replicas[0]] and (end != ends[1] or start > ends[0]):
                return f"{where} goes from {start} to {end}, but its watermarks are {ends}"
    return None


def _is_compacted(cluster: "MixedCluster", topic: str) -> bool:
    (future,) = cluster.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return "compact" in future.result(60)["cleanup.policy"].value


def account_for(where: str, log: bytes) -> tuple[int, int]:
    """Return where a log begins and ends. Nothing may be missing in between."""
    start, end, epoch = 0, 0, -1
    for number, batch in enumerate(iter_batches(memoryview(log))):
        header = batch.header
        if number == 0:
            start = end = header.base_offset
        assert header.base_offset == end, f"{where}: {header.base_offset} follows {end - 1}"
        assert header.leader_epoch >= epoch, f"{where}: epoch {header.leader_epoch} follows {epoch}"
        end, epoch = header.last_offset + 1, header.leader_epoch
    return start, end
