"""What the pure code may ask of a clock."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for how long something takes."""

    def now_ms(self) -> int:
        """Return the wall-clock time since 1970. It may jump, also backwards."""

    def monotonic_ms(self) -> int:
        """Return a time that never goes back. Only differences mean something."""

    def monotonic_ns(self) -> int:
        """Return the same time in nanoseconds, to measure short pieces of work."""
