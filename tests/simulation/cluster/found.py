"""Which seed finds which planted bug. A bug that is not here was not found yet, or not looked for."""

from typing import Final

FOUND_BY: Final[dict[str, int]] = {
    "ack-without-replicas": 45,
    "ack-without-sync": 45,
    "answers-before-replicas": 45,
    "commits-what-was-aborted": 0,
    "cuts-to-the-high-watermark": 45,
    "does-not-follow-a-new-leader": 45,
    "fetcher-stops-when-refused": 45,
    "follower-fetches-unsynced": 45,
    "forgets-duplicates": 45,
    "high-watermark-by-one-follower": 45,
    "high-watermark-is-the-log-end": 0,
    "no-divergence": 45,
    "offsets-of-aborted-transactions": 45,
    "offsets-without-the-marker": 45,
    "partition-is-not-added": 0,
    "reads-open-transactions": 0,
    "same-epoch-for-a-new-leader": 45,
    "session-tells-no-high-watermark": 45,
}
