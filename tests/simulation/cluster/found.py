"""Which seed finds which planted bug. A bug that is not here was not found yet, or not looked for."""

from typing import Final

FOUND_BY: Final[dict[str, int]] = {
    "ack-without-replicas": 14,
    "ack-without-sync": 14,
    "commits-what-was-aborted": 5,
    "does-not-follow-a-new-leader": 16,
    "epoch-starts-with-the-first-write": 14,
    "follower-fetches-unsynced": 14,
    "high-watermark-by-one-follower": 14,
    "high-watermark-is-the-log-end": 14,
    "quorum-any-directory-is-the-voter": 288,
    "quorum-commit-by-minority": 5,
    "quorum-follower-fetches-unsynced": 5,
    "quorum-follower-ignores-voters": 288,
    "quorum-leader-counts-itself-unsynced": 5,
    "reads-open-transactions": 5,
    "same-epoch-for-a-new-leader": 5,
    "session-forgets-the-offset": 5,
    "session-tells-no-high-watermark": 5,
    "stable-without-replicas": 5,
    "storage-ack-without-sync": 5,
    "storage-flush-skips-files": 5,
    "storage-recovery-skips-epoch-zero": 5,
    "storage-stable-up-to-high-watermark": 5,
    "storage-time-look-up-too-far": 5,
}
