"""What a plan is made of: nodes, settings, clients, and faults with their times."""

from typing import Final, NamedTuple

FAULTS_FROM_MS: Final = 100
FAULTS_MS_PER_OPERATION: Final = 80
"""Faults come while there is work: so much time an operation takes."""


class Fault(NamedTuple):
    """Something that breaks at a time, for a while. Its own seed decides the details."""

    at_ms: int
    lasts_ms: int
    kind: str
    seed: int


CLIENTS: Final = ("copier", "compacted", "haunted", "classic", "consumer", "short-lived", "looker")
"""What there is beside transactions and a plain producer. Each seed has some of it, so that it is quick."""


class Plan(NamedTuple):
    """One run."""

    seed: int
    nodes: int
    voters: int
    operations: int
    faults: tuple[Fault, ...]
    settings: dict[str, str]
    features: tuple[str, ...] = ()
    clients: tuple[str, ...] = CLIENTS
    end: str = ""
    more: tuple[str, ...] = ()
    """Clients that do wrong things on purpose, or do not care. Some seeds have them."""
    wide: tuple[str, ...] = ()
    """Clients of a wider world."""
    dynamic: tuple[tuple[str, str], ...] = ()
    """Configs that are set for all brokers before the work begins."""
