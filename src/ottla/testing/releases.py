"""Which versions of the protocol older releases of Apache Kafka speak.

For each release the newest version of every API that clients use. What a release does not list it does not
have. The oldest versions are not here: Ottla, like Apache Kafka 4, has dropped those that no client of the
last years needs, and does not bring them back to look old.
"""

from collections.abc import Mapping
from typing import Final

from ottla.wire.apis import ApiKey

_NEWEST: Final[Mapping[str, tuple[int, ...]]] = {
    # By API key from 0 on; -1 for what there is not, or what only brokers say to each other.
    "2.1": (
        7, 10, 4, 7, -1, -1, -1, -1, 6, 5, 2, 3, 2, 2, 2, 2, 2, 1, 2, 3, 3, 1, 1, 2, 1, 1, 1, 0,
        2, 1, 1, 1, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1,
    ),
    "2.8": (
        9, 12, 6, 11, -1, -1, -1, -1, 8, 7, 3, 7, 4, 4, 5, 5, 4, 1, 3, 7, 6, 2, 4, 4, 3, 3, 3,
        1, 3, 2, 2, 2, 4, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0, -1, -1, -1,
        -1, -1, 0, -1, -1, 0, 0,
    ),
    "3.9": (
        11, 17, 9, 12, -1, -1, -1, -1, 9, 9, 6, 9, 4, 5, 5, 5, 5, 1, 4, 7, 6, 2, 5, 4, 5, 4, 4,
        1, 4, 3, 3, 3, 4, 2, 2, 4, 2, 3, 3, 2, 2, 3, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0, -1, -1, -1,
        -1, -1, 1, -1, -1, 1, 0, -1, -1, -1, 0, 1, -1, 0, 0,
    ),
    "4.0": (
        12, 17, 10, 13, -1, -1, -1, -1, 9, 9, 6, 9, 4, 5, 5, 6, 5, 1, 4, 7, 6, 2, 5, 4, 5, 4, 5,
        1, 5, 3, 3, 3, 4, 2, 2, 4, 2, 3, 3, 2, 2, 3, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0, -1, -1, -1,
        2, -1, 2, -1, -1, 2, 0, -1, -1, 0, 0, 1, -1, 1, 1, -1, -1, -1, -1, 0, 0,
    ),
}  # fmt: skip

RELEASES: Final = tuple(_NEWEST)
"""The releases that a node can pretend to be."""


def newest_versions(release: str) -> dict[ApiKey, int]:
    """Return the newest version of each API in a release."""
    if release not in _NEWEST:
        raise ValueError(f"unknown release {release!r}: use one of {', '.join(RELEASES)}")
    return {ApiKey(key): version for key, version in enumerate(_NEWEST[release]) if version >= 0}
