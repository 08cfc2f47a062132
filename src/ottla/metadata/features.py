"""Features: what the nodes of a cluster have agreed to use, so that none meets what it does not know.

Each node supports a range of levels of a feature. The cluster finalizes one level of each, by records in the
metadata log. The most telling is `metadata.version`: it says which records may be written, and in which
version. `kraft.version` is agreed on by control records of the quorum instead.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class LevelRange(NamedTuple):
    """The levels of a feature that a node supports, both ends included."""

    min: int
    max: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min <= level <= self.max


UNSUPPORTED: Final = LevelRange(0, 0)
"""What a node supports of a feature it does not know."""

SUPPORTED: Final[Mapping[str, LevelRange]] = {
    GROUP_VERSION: LevelRange(0, 1),
    KRAFT_VERSION: LevelRange(0, 1),
    METADATA_VERSION: LevelRange(7, 30),
    SHARE_VERSION: LevelRange(0, 1),
    STREAMS_VERSION: LevelRange(0, 1),
    TRANSACTION_VERSION: LevelRange(0, 2),
    ELR_VERSION: LevelRange(0, 1),
}
"""What this node supports: the same as Apache Kafka 4.3."""

LATEST_METADATA_VERSION: Final = 30

# Levels of metadata.version from which on something may be written.
SCRAM_FROM: Final = 11
TRANSACTIONS_FROM: Final = 13
CONTROLLER_REGISTRATION_FROM: Final = 15
DIRECTORIES_FROM: Final = 17
ELR_FROM: Final = 23
CORDONED_FROM: Final = 30

# Levels that brought records, or fields of records, which the level before them cannot read.
_CHANGED_METADATA: Final = frozenset((7, 8, 11, 13, 14, 15, 17, 23, 30))

# From which metadata.version on a freshly formatted cluster gets which level.
_DEFAULT_LEVELS: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    ELR_VERSION: ((26, 1),),
    GROUP_VERSION: ((22, 1),),
    SHARE_VERSION: ((28, 1),),
    STREAMS_VERSION: ((29, 1),),
    TRANSACTION_VERSION: ((24, 2),),
}

# How many metadata.versions each release brought, and under which name the first of them goes.
_RELEASES: Final[Mapping[str, tuple[int, int, int]]] = {
    # release: the first level, how many levels, the number in the name of the first
    "3.3": (7, 1, 3),
    "3.4": (8, 1, 0),
    "3.5": (9, 3, 0),
    "3.6": (12, 3, 0),
    "3.7": (15, 5, 0),
    "3.8": (20, 1, 0),
    "3.9": (21, 1, 0),
    "4.0": (22, 4, 0),
    "4.1": (26, 2, 0),
    "4.2": (28, 2, 0),
    "4.3": (30, 1, 0),
}

_NEEDED_METADATA_VERSION: Final[Mapping[tuple[str, int], int]] = {(ELR_VERSION, 1): ELR_FROM}


def default_levels(metadata_version: int = LATEST_METADATA_VERSION) -> dict[str, int]:
    """Return the levels a fresh cluster starts with, metadata.version first and the others by name."""
    levels = {METADATA_VERSION: metadata_version}
    for name in sorted(_DEFAULT_LEVELS):
        reached = [level for since, level in _DEFAULT_LEVELS[name] if since <= metadata_version]
        if reached:
            levels[name] = reached[-1]
    return levels


def find_metadata_version(release: str) -> int | None:
    """Return the metadata.version of a release, such as `4.0`, `4.0.1` or `4.0-IV2`."""
    version, dash, step = release.partition("-IV")
    first, count, number = _RELEASES.get(".".join(version.split(".")[:2]), (0, 0, 0))
    if count == 0:
        return None
    if not dash:
        return first + count - 1
    index = int(step) - number if step.isdecimal() else -1
    return first + index if 0 <= index < count else None


def metadata_version_of(features: Mapping[str, int]) -> int:
    """Return the finalized metadata.version. Before there is one, the oldest that we read is assumed."""
    return features.get(METADATA_VERSION, SUPPORTED[METADATA_VERSION].min)


def is_elr_enabled(features: Mapping[str, int]) -> bool:
    """Say whether eligible leader replicas are kept (KIP-966)."""
    return features.get(ELR_VERSION, 0) >= 1


def loses_metadata(old: int, new: int) -> bool:
    """Say whether going down from metadata.version `old` to `new` would lose what only `old` can express."""
    return any(level in _CHANGED_METADATA for level in range(new + 1, old + 1))


def find_unmet_need(name: str, level: int, levels: Mapping[str, int]) -> tuple[str, int] | None:
    """Return a feature and the level of it that `level` of feature `name` needs but `levels` lack."""
    least = SUPPORTED[METADATA_VERSION].min if level >= 1 else 0
    needed = max(least, _NEEDED_METADATA_VERSION.get((name, level), 0))
    return (METADATA_VERSION, needed) if levels.get(METADATA_VERSION, 0) < needed else None
