"""What is counted of replicas, by the names that alerts and dashboards have."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.metrics.replication_metrics import replication_metrics


def _follower(lag: int) -> Any:
    return SimpleNamespace(lag=lag)


def _led(in_sync: int, replicas: int, least: int) -> Any:
    return SimpleNamespace(
        leader_id=1,
        is_leader=True,
        in_sync=tuple(range(in_sync)),
        replicas=tuple(range(replicas)),
        has_enough_replicas=in_sync >= least,
        in_sync_replicas_min=least,
    )


def _followed(leader_id: int) -> Any:
    return SimpleNamespace(leader_id=leader_id, is_leader=False)


PARTITIONS = (
    _led(3, 3, 2),
    _led(2, 3, 2),
    _led(1, 3, 2),
    _led(2, 2, 2),
    # With one replica it cannot be otherwise.
    _led(1, 1, 1),
    _followed(-1),
    _followed(-1),
    _followed(3),
)


@pytest.mark.parametrize("is_busy", [False, True])
def test_each_number_is_given_under_its_name(is_busy: bool) -> None:
    fetchers = {
        1: SimpleNamespace(partitions={"a": _follower(4), "b": _follower(9)}, failed={"c": "x", "d": "y"}),
        2: SimpleNamespace(partitions={"e": _follower(7)}, failed={"f": "z"}),
    }
    replication = SimpleNamespace(
        in_sync_shrinks=11, in_sync_expands=12, bytes_in=13, fetchers=fetchers if is_busy else {}
    )
    broker: Any = SimpleNamespace(
        replication=replication,
        healing=SimpleNamespace(healed_ranges=14),
        partitions=PARTITIONS if is_busy else (),
    )

    found = {metric.name: (metric.type, metric.samples[0].value) for metric in replication_metrics(broker)}

    assert found == {
        "ottla_under_replicated_partitions": ("gauge", 2 if is_busy else 0),
        "ottla_under_min_isr_partitions": ("gauge", 1 if is_busy else 0),
        "ottla_at_min_isr_partitions": ("gauge", 2 if is_busy else 0),
        "ottla_leaderless_partitions": ("gauge", 2 if is_busy else 0),
        "ottla_isr_shrinks": ("counter", 11),
        "ottla_isr_expands": ("counter", 12),
        "ottla_replication_bytes_in": ("counter", 13),
        "ottla_healed_ranges": ("counter", 14),
        "ottla_replica_max_lag": ("gauge", 9 if is_busy else 0),
        "ottla_replicas_failed": ("gauge", 3 if is_busy else 0),
    }
