"""Who appends, and what comes of it."""

from enum import Enum
from typing import NamedTuple

from ottla.model.ids import Offset


class AppendOrigin(Enum):
    """Where batches come from, which decides what is checked."""

    # A producer: everything is checked, one batch at a time.
    CLIENT = "client"
    # A coordinator of this broker: its state and the markers of transactions. Sequences are not checked.
    COORDINATOR = "coordinator"
    # The leader of the metadata quorum.
    RAFT_LEADER = "raft leader"


class AppendInfo(NamedTuple):
    """What an append did. Of a duplicate it says where the first one is."""

    first_offset: Offset
    last_offset: Offset
    max_timestamp: int
    # -1 where the records keep the timestamps that their producer gave them.
    log_append_time_ms: int
    log_start_offset: Offset
    is_duplicate: bool = False
    # A segment was completed, or `flush.messages` is reached: a flush should be started.
    flush_is_due: bool = False
