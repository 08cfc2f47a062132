"""What the controller knows about itself and the cluster when it starts."""

from collections.abc import Mapping
from typing import NamedTuple


class ControllerSettings(NamedTuple):
    """The settings of a controller. They do not change while it runs."""

    node_id: int
    cluster_id: str
    static_configs: Mapping[str, str]
    """What the node was started with, as texts. Defaults for topics and brokers come from there."""
