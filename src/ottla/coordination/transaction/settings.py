"""What the transaction coordinator is configured with."""

from typing import NamedTuple


class TransactionSettings(NamedTuple):
    """The node's settings, by the names of the configs they come from."""

    max_timeout_ms: int = 900_000
    """`transaction.max.timeout.ms`"""
    id_expiration_ms: int = 604_800_000
    """`transactional.id.expiration.ms`"""
    abort_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`"""
    expiry_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`"""
    retry_ms_max: int = 100
    """`add.partitions.to.txn.retry.backoff.max.ms`: how long a write waits for the transaction before its own
    to be completed."""
    is_two_phase_commit_enabled: bool = False
    """`transaction.two.phase.commit.enable`"""
