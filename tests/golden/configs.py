"""The table of Apache Kafka 4.3.1's configs, as tests/java/ConfigDefinitions.java prints it."""

from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("configs.tsv")


class Definition(NamedTuple):
    """One config: a line of the table."""

    scope: str
    name: str
    type: str
    default: str
    valid: str
    update: str
    importance: str
    internal: str
    broker_key: str


def definitions() -> list[Definition]:
    """Return every config of the table, by scope and name."""
    return [Definition(*line.split("\t")) for line in TABLE.read_text().splitlines()]
