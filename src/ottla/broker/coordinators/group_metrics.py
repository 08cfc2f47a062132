"""Groups and transactions, for Prometheus: how many are in which state, and how far groups are behind.

Nothing is counted for it while requests are served: a scrape looks at what the coordinators have in memory.
It runs in a thread of its own, so it only goes through copies.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from ottla.broker.logs.partitions import Partitions
from ottla.coordination.group.coordinator import GroupCoordinator
from ottla.coordination.share.coordinator import ShareCoordinator
from ottla.coordination.transaction.coordinator import TransactionCoordinator
from ottla.model.ledger_groups import is_ledger

SERIES_MAX: Final = 1000
"""Of how many pairs of a group and a topic the lag is given: those that are behind the furthest.

Groups are made by clients, who can make any number of them, and each pair costs Prometheus memory for weeks.
"""


def group_metrics(coordinator: GroupCoordinator, partitions: Partitions) -> Iterator[Metric]:
    """Give all metrics of groups."""
    states: Counter[tuple[str, str]] = Counter()
    for shard in coordinator.shards:
        states.update((group.kind.value, group.state_name) for group in list(shard.state.groups.values()))
    groups = GaugeMetricFamily(
        "ottla_groups", "Number of groups by type and state.", labels=("type", "state")
    )
    for (kind, state), count in sorted(states.items()):
        groups.add_metric((kind, state), count)
    yield groups
    yield from _lags(coordinator, partitions)


def _lags(coordinator: GroupCoordinator, partitions: Partitions) -> Iterator[Metric]:
    found = _find_lags(coordinator, partitions)
    lag = GaugeMetricFamily(
        "ottla_group_lag_records",
        f"Records of a topic that a group has not committed yet, for the {SERIES_MAX} largest lags.",
        labels=("group", "topic"),
    )
    committed = GaugeMetricFamily(
        "ottla_group_committed_offset",
        "Sum of a group's committed offsets in a topic. Its rate is the speed at which the group reads.",
        labels=("group", "topic"),
    )
    for labels in nlargest(SERIES_MAX, found, key=lambda labels: found[labels][0]):
        records, offset = found[labels]
        lag.add_metric(labels, records)
        committed.add_metric(labels, offset)
    yield lag
    yield committed
    yield GaugeMetricFamily(
        "ottla_group_lags_left_out",
        "Pairs of a group and a topic whose lag is left out because others are larger.",
        max(len(found) - SERIES_MAX, 0),
    )


def _find_lags(
    coordinator: GroupCoordinator, partitions: Partitions
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the lag and the committed offsets by group and topic, summed over partitions of this node."""
    find = partitions.find
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for shard in coordinator.shards:
        for group_id, offsets in shard.state.offsets.all():
            if is_ledger(group_id):
                continue
            for (topic, number), committed in offsets:
                partition = find(topic, number)
                if partition is None:
                    continue
                # Records that retention has deleted cannot be read any more, so nobody is behind by them.
                begin = max(committed.offset, partition.log.log_start_offset)
                lag, offset = found.get((group_id, topic), (0, 0))
                lag += max(partition.log.high_watermark - begin, 0)
                found[group_id, topic] = (lag, offset + committed.offset)
    return found


def share_metrics(coordinator: ShareCoordinator) -> Iterator[Metric]:
    """Give all metrics of the share coordinator."""
    yield GaugeMetricFamily(
        "ottla_share_partitions",
        "Number of partitions whose state in a share group this node keeps.",
        sum(len(shard.state.states) for shard in coordinator.shards),
    )


def transaction_metrics(coordinator: TransactionCoordinator) -> Iterator[Metric]:
    """Give all metrics of transactions."""
    states: Counter[str] = Counter()
    for shard in coordinator.shards:
        transactions = list(shard.state.transactions.values())
        states.update(transaction.status.title for transaction in transactions)
    family = GaugeMetricFamily(
        "ottla_transactions",
        "Number of transactional ids by the state of their last transaction.",
        labels=("state",),
    )
    for state, count in sorted(states.items()):
        family.add_metric((state,), count)
    yield family
