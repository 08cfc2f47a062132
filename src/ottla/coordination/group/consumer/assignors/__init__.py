"""Server-side assignors: pure functions from who wants what, and has what, to who gets what."""

from typing import Final

from ottla.coordination.group.consumer.assignors.assignor import Assignor
from ottla.coordination.group.consumer.assignors.range import assign_ranges
from ottla.coordination.group.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that clients know them under."""
