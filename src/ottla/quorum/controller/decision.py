"""What a decision is made from, and what it is.

    def decide_delete_topics(view: ControllerView, ask: DeleteTopicsRequest) -> Decision[DeleteTopicsResponse]

A decide function looks at its view and returns records and a reply. It changes nothing. The controller
appends the records as one batch, replays them, and gives the reply when the batch is committed.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.metadata.image import MetadataImage
from ottla.model.ids import Offset
from ottla.quorum.controller.settings import ControllerSettings

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")

RECORDS_MAX = 10_000
"""How many records one request may make, as in Kafka. What a broker's restart makes is not bounded by it."""


class Randomness(Protocol):
    """Where chance comes from. `random.Random` is one."""

    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes."""

    def randrange(self, stop: int) -> int:
        """Return a number from 0 up to below `stop`."""

    def shuffle(self, x: list[Any]) -> None:
        """Shuffle a list in place."""


class ControllerView(NamedTuple):
    """Everything a decision may look at.

    The image contains what is appended, committed or not: of two requests to create the same topic, the
    second finds it there while the first still waits for its answer.
    """

    image: MetadataImage
    next_offset: Offset
    """Where the first record of this decision will lie: a broker's epoch is where its registration lies."""
    now_ms: int
    settings: ControllerSettings
    random: Randomness


class Decision(NamedTuple, Generic[Reply]):
    """Records to append, and the reply for when they are committed."""

    reply: Reply
    records: tuple[Any, ...] = ()


Decide = Callable[[ControllerView, Ask], Decision[Reply]]
