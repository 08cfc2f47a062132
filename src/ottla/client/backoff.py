"""How long to wait before trying again: longer each time, with some chance in it, up to a limit."""

from collections.abc import Iterator

from ottla.client import surroundings


def backoff_s(first_s: float = 0.1, most_s: float = 1.0, spread: float = 0.2) -> Iterator[float]:
    """Yield waits that double from `first_s` to `most_s`, each moved by up to `spread` either way.

    The chance keeps a thousand clients that lost the same broker from coming back in one instant.
    """
    wait_s = first_s
    while True:
        yield wait_s * surroundings.current.random.uniform(1 - spread, 1 + spread)
        wait_s = min(wait_s * 2, most_s)
