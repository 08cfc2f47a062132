"""Seeds that found something, or that are known to find a planted bug in a wider world."""

from typing import Final

FOUND_SOMETHING: Final = (
    30, 307, 10012, 10142, 30544, 51183, 51764, 52067, 52116, 52196, 53213, 53521, 53963, 55491, 56267, 57108,
    57706,
)  # fmt: skip
"""Seeds that found something in the product before there was a wider world."""
WIDE_FOUND_BY: Final[dict[str, int]] = {
    "abort-after-commit-is-fenced": 11,
    "answers-are-waited-for-for-ever": 100,
    "configs-before-the-start-are-forgotten": 26,
    "configs-stay-what-they-were": 185,
    "cut-before-its-loss-is-known": 1351,
    "damaged-epochs-are-believed": 835,
    "deletion-needs-a-follower": 130,
    "eligible-leaders-are-forgotten": 1669,
    "eligible-leaders-without-a-number": 177,
    "empty-logs-beside-a-failed-directory": 414,
    "empty-share-groups-expire": 37,
    "lost-connections-are-not-made-again": 3,
    "lost-replicas-stay-eligible": 371,
    "moves-forget-leader-epochs": 13,
    "news-is-published-backwards": 36,
    "one-refusal-is-proof": 402,
    "parked-for-good": 163,
    "what-is-bridged-is-forgotten": 363,
}
"""Which seed with a wider world finds which planted bug."""
