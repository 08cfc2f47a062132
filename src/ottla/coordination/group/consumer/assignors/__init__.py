"""Server-side assignors: pure functions from what members want and have to what they get."""

from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Assignor
from ottla.coordination.group.consumer.assignors.range import assign_ranges
from ottla.coordination.group.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that clients know them under."""

_OF_KAFKA: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def find_assignor_name(configured: str) -> str | None:
    """Return which assignor a config means, by its name or by that of Kafka's class."""
    name = _OF_KAFKA.get(configured, configured)
    return name if name in ASSIGNORS else None
