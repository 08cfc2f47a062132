"""Which clients the actors of a scenario may be written with."""

from importlib.util import find_spec
from typing import Final, NamedTuple

from ottla.lab.java import JavaClient

OURS: Final = "ours"
CONFLUENT: Final = "confluent"
JAVA: Final = "java"
KAFKA_PYTHON: Final = "kafka-python"
"""Drawn only where a scenario names it: its settings have other names."""


class Clients(NamedTuple):
    """The kinds to draw from, where a scenario leaves it open."""

    kinds: tuple[str, ...]
    java: JavaClient | None = None

    @property
    def the_java(self) -> JavaClient:
        """Return the client in Java, which must have been given."""
        assert self.java is not None, "only who gives a client in Java may draw one"
        return self.java


def installed_clients(java: JavaClient | None = None) -> Clients:
    """Return all clients that are there."""
    kinds = [CONFLUENT] if find_spec("confluent_kafka") is not None else []
    kinds.append(OURS)
    if java is not None:
        kinds.append(JAVA)
    return Clients(tuple(kinds), java)
