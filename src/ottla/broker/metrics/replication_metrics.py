"""What a node tells Prometheus of its replicas. The names are Kafka's, in the spelling of Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ottla.broker.node import Broker


def replication_metrics(broker: Broker) -> Iterator[Metric]:
    """Give the metrics of a broker. Called by another thread."""
    replication = broker.replication
    led = [one for one in broker.partitions if one.is_leader]
    yield GaugeMetricFamily(
        "ottla_under_replicated_partitions",
        "Partitions led by this node that have a replica which is not in sync.",
        sum(len(one.in_sync) < len(one.replicas) for one in led),
    )
    yield GaugeMetricFamily(
        "ottla_under_min_isr_partitions",
        "Partitions led by this node with fewer in-sync replicas than `min.insync.replicas`. "
        "They refuse writes with `acks=all`.",
        sum(not one.has_enough_replicas for one in led),
    )
    yield GaugeMetricFamily(
        "ottla_at_min_isr_partitions",
        "Partitions led by this node with just as many in-sync replicas as `min.insync.replicas`.",
        sum(len(one.in_sync) == one.in_sync_replicas_min for one in led if len(one.replicas) > 1),
    )
    yield GaugeMetricFamily(
        "ottla_leaderless_partitions",
        "Partitions on this node that have no leader.",
        sum(one.leader_id < 0 for one in broker.partitions),
    )
    yield CounterMetricFamily(
        "ottla_isr_shrinks", "Followers that left the in-sync replicas.", replication.in_sync_shrinks
    )
    yield CounterMetricFamily(
        "ottla_isr_expands", "Followers that joined the in-sync replicas.", replication.in_sync_expands
    )
    yield CounterMetricFamily(
        "ottla_replication_bytes_in", "Bytes of batches copied from leaders.", replication.bytes_in
    )
    yield CounterMetricFamily(
        "ottla_healed_ranges",
        "Damaged parts of logs on this node that were healed from another replica.",
        broker.healing.healed_ranges,
    )
    followed = [
        one for fetcher in list(replication.fetchers.values()) for one in list(fetcher.partitions.values())
    ]
    yield GaugeMetricFamily(
        "ottla_replica_max_lag",
        "Records that the follower on this node which is furthest behind has still to copy.",
        max((one.lag for one in followed), default=0),
    )
    yield GaugeMetricFamily(
        "ottla_replicas_failed",
        "Replicas on this node that are not copied because of an error.",
        sum(len(fetcher.failed) for fetcher in list(replication.fetchers.values())),
    )
