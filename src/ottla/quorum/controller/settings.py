"""What the controller is told about itself and the cluster when it starts."""

from typing import NamedTuple


class ControllerSettings(NamedTuple):
    """The settings of a controller. They do not change while it runs."""

    node_id: int
    cluster_id: str
    default_partitions: int = 1
    default_replication_factor: int = 1
    delete_topics_enabled: bool = True
