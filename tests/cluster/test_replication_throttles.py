"""Throttled replication is as slow as it was told to be, measured by the bytes that arrive."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # type: ignore[attr-defined]
from tests.support.mixed_cluster import MixedCluster, wait_until

TOPIC = "large"
RECORD_BYTES = 10_000
RECORDS = 600
RATE = 500_000
SECONDS = 4.0


@pytest.mark.parametrize(
    "side",
    [
        pytest.param(
            "leader", marks=pytest.mark.thorough(guard="tests/unit/broker/limits/test_throttles.py")
        ),
        "follower",
    ],
)
def test_a_replica_that_moves_takes_no_more_than_its_share(tmp_path: Path, side: str) -> None:
    windows = {"replication.quota.window.num": "4", "replication.quota.window.size.seconds": "1"}
    with MixedCluster(tmp_path, "ooo", (1, 2, 3), windows) as cluster:
        cluster.create_topic(TOPIC, 1, replicas=1)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "none"})
        for _ in range(RECORDS):
            producer.produce(TOPIC, b"x" * RECORD_BYTES)
            producer.poll(0)
        assert producer.flush(120) == 0
        (source,) = cluster.replicas(TOPIC)[0]
        target = 1 + source % 3
        names = {f"{side}.replication.throttled.replicas": "*"}
        set_configs(cluster, ResourceType.TOPIC, TOPIC, names)
        limited = str(source if side == "leader" else target)
        rate = f"{side}.replication.throttled.rate"
        set_configs(cluster, ResourceType.BROKER, limited, {rate: str(RATE)})
        wait_until(lambda: shown_rate(cluster, limited, rate) == str(RATE), "the broker knows its limit")
        started = time.monotonic()
        cluster.reassign(TOPIC, {0: [target, source]})
        total = RECORDS * RECORD_BYTES
        wait_until(lambda: len(cluster[target].log_bytes(TOPIC, 0)) >= SECONDS * RATE, "some has arrived")
        taken_s = time.monotonic() - started
        arrived = len(cluster[target].log_bytes(TOPIC, 0))
        # A limit is looked at before each fetch, so that one fetch too many may come, in each window.
        assert arrived < total, "it takes its time"
        assert taken_s > SECONDS / 4, "nowhere near what the network could do"
        set_configs(cluster, ResourceType.BROKER, limited, {rate: str(1 << 40)})
        wait_until(lambda: len(cluster[target].log_bytes(TOPIC, 0)) >= total, "the rest has arrived")
        cluster.wait_for_in_sync(TOPIC, 2)
        assert cluster[target].log_bytes(TOPIC, 0) == cluster[source].log_bytes(TOPIC, 0)


def set_configs(cluster: MixedCluster, kind: ResourceType, name: str, values: dict[str, str]) -> None:
    resource = ConfigResource(kind, name)
    for key, value in values.items():
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET))
    for future in cluster.admin.incremental_alter_configs([resource]).values():
        future.result(60)


def shown_rate(cluster: MixedCluster, broker: str, key: str) -> str | None:
    """Return what a broker itself says about one of its configs."""
    (future,) = cluster.admin.describe_configs([ConfigResource(ResourceType.BROKER, broker)]).values()
    entry = future.result(60).get(key)
    return None if entry is None else entry.value
