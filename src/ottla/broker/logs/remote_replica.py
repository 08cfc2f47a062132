"""What a leader knows of one follower, from the follower's own fetches."""

from typing import Final

UNKNOWN: Final = -1
NEVER_MS: Final = -(1 << 62)
"""A time before all others."""


class RemoteReplica:
    """One follower of a partition that this node leads."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_ms",
        "fetches",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
        "repeats",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        # When it last fetched, and where our log ended then.
        self.fetched_ms = NEVER_MS
        self.leader_end_at_fetch = UNKNOWN
        # How often it has fetched.
        self.fetches = 0
        # The last time at which it had all that we had.
        self.caught_up_ms = NEVER_MS
        # That of its fetches; None before the first. -1 comes from a broker that is not registered yet.
        self.broker_epoch: int | None = None
        # How often in a row it has fetched from where it had fetched before, although there was something.
        self.repeats = 0

    def reset(self, now_ms: int, leader_end: int, is_in_sync: bool, is_new_leader: bool) -> None:
        """Begin a leader epoch. A replica that is in sync gets the whole lag time to show that it still is.

        One that is not must not hold the high watermark back.
        """
        self.caught_up_ms = self.fetched_ms = now_ms if is_in_sync else NEVER_MS
        if is_new_leader:
            self.log_end_offset = self.log_start_offset = self.leader_end_at_fetch = UNKNOWN
            self.fetched_ms = NEVER_MS
            self.broker_epoch = None
        else:
            self.leader_end_at_fetch = leader_end

    def note_fetch(
        self, offset: int, log_start_offset: int, leader_end: int, now_ms: int, broker_epoch: int
    ) -> None:
        """Take note of a fetch: the follower has everything below `offset`."""
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_fetch:
            # It has what there was when it fetched before. What came since may be on its way.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        is_repeated = offset == self.log_end_offset and offset < self.leader_end_at_fetch
        self.repeats = self.repeats + 1 if is_repeated else 0
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = leader_end
        self.fetched_ms = now_ms
        self.fetches += 1
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Say whether it has everything, or had everything a short while ago."""
        return self.log_end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms_max
