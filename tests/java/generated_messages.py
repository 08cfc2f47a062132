"""Asks Apache Kafka's generated classes what they read in some bytes, and how they would write it."""

import json
from typing import Any, NamedTuple

from tests.java.oracle import Oracle, Text

from ottla.wire.codec import decode, encode


class Refused(Exception):
    """Kafka's class did not read the bytes, or could not write what it had read."""


class Reading(NamedTuple):
    """What Kafka's class made of some bytes."""

    written: bytes
    """The same message, as Kafka writes it."""
    values: dict[str, Any]
    """Its fields, as Kafka's converter to JSON shows them."""


def message_text(cls: type[Any], version: int) -> Text[Any]:
    """Return how messages of a version are written down as examples."""
    return Text(
        lambda message: bytes(encode(message, version)).hex(),
        lambda text: decode(cls, bytes.fromhex(text), version),
    )


def two_versions_text(cls: type[Any]) -> Text[tuple[tuple[int, int], Any]]:
    """Return how messages are written down that are read in one version and written in another."""

    def write(example: tuple[tuple[int, int], Any]) -> str:
        (first, second), message = example
        return f"{first} {second} {message_text(cls, first).write(message)}"

    def read(text: str) -> tuple[tuple[int, int], Any]:
        first, second, content = text.split(" ")
        return (int(first), int(second)), message_text(cls, int(first)).read(content)

    return Text(write, read)


class GeneratedMessages:
    """Kafka's classes, asked one question at a time."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def ask(self, message: str, version: int, data: bytes, write_version: int | None = None) -> Reading:
        """Have Kafka's class of this message read bytes in a version, and write them in that or another."""
        write_version = version if write_version is None else write_version
        question = f"{message} {version} {write_version} {data.hex()}"
        answer = self._oracle.ask("GeneratedMessages", question)
        if answer.startswith("!"):
            raise Refused(f"{message} v{version} to v{write_version}: {answer}")
        written, _, values = answer.partition(" ")
        return Reading(bytes.fromhex(written), json.loads(values))
