"""What the answer to a heartbeat tells a member besides its tasks: what keeps the group from running."""

from enum import IntEnum


class StatusCode(IntEnum):
    """The codes of the status list."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
