"""A rate over a sliding row of samples, measured as Kafka measures it, because quotas are compared with it.

There are `samples_max` samples of `sample_ms` each. The rate is the sum of all that are not too old, divided
by the time they span; but never by less than all samples except the current one, so that a burst after
silence is not taken for a high rate.
"""

from collections import deque


class Rate:
    """How much per second, over the last samples."""

    __slots__ = ("_sample_ms", "_samples", "_samples_max", "total")

    def __init__(self, samples_max: int, sample_ms: int) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        # Each sample: when it began, and how much was counted in it.
        self._samples: deque[list[float]] = deque()
        self.total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        """Count an amount. A negative one takes back what was counted before."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._sample_ms:
            self._drop_old(now_ms)
            samples.append([now_ms, 0.0])
        samples[-1][1] += amount
        self.total += amount

    def per_second(self, now_ms: int) -> float:
        """Return the rate."""
        self._drop_old(now_ms)
        return self.total * 1000 / self.window_ms(now_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Say whether nothing counts any more, so that a new rate would say the same."""
        self._drop_old(now_ms)
        return not self._samples

    def window_ms(self, now_ms: int) -> int:
        """Return the time over which the rate is taken."""
        shortest_ms = (self._samples_max - 1) * self._sample_ms or self._sample_ms
        if not self._samples:
            return shortest_ms
        elapsed_ms = now_ms - int(self._samples[0][0])
        missing = max(0, self._samples_max - 1 - elapsed_ms // self._sample_ms)
        return max(elapsed_ms + missing * self._sample_ms, 1)

    def _drop_old(self, now_ms: int) -> None:
        samples = self._samples
        oldest_ms = now_ms - self._samples_max * self._sample_ms
        while samples and samples[0][0] <= oldest_ms:
            self.total -= samples.popleft()[1]
        if not samples:
            # Sums of floats drift: an empty row is exactly nothing.
            self.total = 0.0
