"""What stories are made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of the story. `actor` is who did it, for the picture: a client, the log, or a group."""

    at_ms: int | None
    kind: str
    text: str
    source: str
    actor: str
    until_ms: int | None = None
    """For what is known as a range: when it had happened at the latest."""
