"""The clock of the machine."""

import time


class SystemClock:
    """Wall time and monotonic time."""

    def now_ms(self) -> int:
        """Return the wall-clock time since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return a time that never goes back."""
        return time.monotonic_ns() // 1_000_000

    monotonic_ns = staticmethod(time.monotonic_ns)
