"""What Prometheus is told of the whole cluster."""

from tests.support.deciding import DecidingController, registration

from ottla.broker.metrics.controller_metrics import ControllerMetrics
from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import NO_LEADER
from ottla.wire.declare import replace


def numbers(metrics: ControllerMetrics, image: MetadataImage, is_active: bool = True) -> dict[str, float]:
    return {
        sample.name.removeprefix("ottla_"): sample.value
        for metric in metrics.collect(image, is_active)
        for sample in metric.samples
    }


def test_brokers_and_partitions_are_counted() -> None:
    metrics = ControllerMetrics()
    controller = DecidingController([registration(0), registration(1), registration(2)])
    controller.have("t", (0, 1), (1, 2), (2, 0))
    healthy = numbers(metrics, controller.image)
    assert healthy["global_partition_count"] == 3
    assert healthy["active_broker_count"] == 3
    assert healthy["offline_partitions_count"] == healthy["preferred_replica_imbalance_count"] == 0
    controller.replay(
        registration(2, fenced=True),
        replace(controller.partition("t", 1), isr=(1,)),
        replace(controller.partition("t", 2), isr=(), leader=NO_LEADER),
        replace(controller.partition("t", 0), adding_replicas=(1,), leader=1),
    )
    found = numbers(metrics, controller.image, is_active=False)
    assert found == {
        "active_controller_count": 0,
        "active_broker_count": 2,
        "fenced_broker_count": 1,
        "global_topic_count": 1,
        "global_partition_count": 3,
        "offline_partitions_count": 1,
        "preferred_replica_imbalance_count": 2,
        "global_under_replicated_partitions_count": 2,
        "reassigning_partitions_count": 1,
    }
