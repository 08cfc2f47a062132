"""How many seeds a test tries: those that are recorded, or more with Apache Kafka itself."""

from tests.java.oracle import LIVE, RECORDED


class _Chosen:
    mode = RECORDED


def choose(mode: str) -> None:
    """Say who answers for Apache Kafka in this process."""
    _Chosen.mode = mode


def rounds(recorded: int, live: int) -> range:
    """Return the seeds of a test."""
    return range(live if _Chosen.mode == LIVE else recorded)
