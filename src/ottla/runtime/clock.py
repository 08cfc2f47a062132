"""The clock of the machine."""

from time import monotonic_ns, time_ns


class SystemClock:
    """Wall time and monotonic time, in milliseconds."""

    def now_ms(self) -> int:
        """Return the wall-clock time since 1970."""
        return time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return a time that never goes back."""
        return monotonic_ns() // 1_000_000
