"""What a node asks of chance."""

from typing import Any, Protocol


class Randomness(Protocol):
    """Where random numbers come from. `random.Random` and `random.SystemRandom` are such sources."""

    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes."""

    def randrange(self, start: int, stop: int | None = None, /) -> int:
        """Return a number from 0 up to below `start`, or from `start` up to below `stop`."""

    def shuffle(self, x: list[Any]) -> None:
        """Shuffle a list in place."""
