"""Client quotas: bytes written, bytes read and request time, for each user and client id.

A client that is over a quota is answered at once, asked to wait, and not read from for that long. The time is
chosen as Kafka chooses it: so long that the rate, over its window, would fall to the limit.

Which quota holds for a client is a matter of the metadata (`quota_limits`). The quota on partitions that are
created and deleted is the controller's.

Pure: time comes with each call.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.broker.limits.rate import Rate
from ottla.metadata.image import QuotaEntity
from ottla.metadata.quota_limits import find_limit


class QuotaKind(Enum):
    """What is limited. The value is Kafka's name of it."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"


ENTITIES_MAX: Final = 10_000
"""How many users and clients are followed. A peer can choose its client id, so there has to be a bound."""
ENTITIES_OF_A_USER_MAX: Final = 1_000
"""How many of them one user has. All further client ids of that user are one: none escapes by a new name."""


class _Limited:
    """One entity under one limit."""

    __slots__ = ("limit", "rate")

    def __init__(self, limit: float, rate: Rate) -> None:
        self.limit = limit
        self.rate = rate


class Quotas:
    """The quotas of a broker, and how much of them is used."""

    def __init__(self, samples_max: int = 11, sample_ms: int = 1000) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        self._limits: Mapping[QuotaEntity, Mapping[str, float]] = {}
        self._found: dict[tuple[QuotaKind, str, str], _Limited | None] = {}
        # Each with the user for whom it began.
        self._rates: dict[tuple[QuotaKind, str, str], tuple[Rate, str]] = {}
        self._counts: Counter[str] = Counter()
        self._others: dict[tuple[QuotaKind, str], Rate] = {}
        self._now_ms = self._forgot_ms = 0
        # What most brokers look at, and nothing else: no quota of the kind is set at all.
        self.limits_produce = False
        self.limits_fetch = False
        self.limits_requests = False
        self.has_limits = False

    def use(self, limits: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take new limits. What was counted stays counted."""
        self._limits = limits
        self._found.clear()
        names = {name for quotas in limits.values() for name in quotas}
        self.limits_produce = QuotaKind.PRODUCE.value in names
        self.limits_fetch = QuotaKind.FETCH.value in names
        self.limits_requests = QuotaKind.REQUEST.value in names
        self.has_limits = self.limits_produce or self.limits_fetch or self.limits_requests

    def record(self, kind: QuotaKind, user: str, client_id: str, amount: float, now_ms: int) -> int:
        """Count what a client used. Return for how many milliseconds it has to wait."""
        self._now_ms = now_ms
        limited = self._find(kind, user, client_id)
        if limited is None:
            return 0
        rate, limit = limited.rate, limited.limit
        rate.record(amount, now_ms)
        measured = rate.per_second(now_ms)
        if measured <= limit:
            return 0
        window_ms = rate.window_ms(now_ms)
        throttle_ms = window_ms if limit <= 0 else round((measured - limit) / limit * window_ms)
        if kind is QuotaKind.REQUEST:
            # Time cannot be given back by waiting longer than it is measured over.
            throttle_ms = min(throttle_ms, self._sample_ms)
        return min(throttle_ms, 0x7FFFFFFF)

    def take_back(self, kind: QuotaKind, user: str, client_id: str, amount: float, now_ms: int) -> None:
        """Uncount what was refused after all."""
        limited = self._find(kind, user, client_id)
        if limited is not None:
            limited.rate.record(-amount, now_ms)

    def bytes_max(self, kind: QuotaKind, user: str, client_id: str) -> int | None:
        """Return the most one answer may hold, or none could ever stay within the quota. None: no limit."""
        limited = self._find(kind, user, client_id)
        if limited is None:
            return None
        return int(limited.limit * (self._samples_max - 1) * self._sample_ms / 1000)

    def _find(self, kind: QuotaKind, user: str, client_id: str) -> _Limited | None:
        key = (kind, user, client_id)
        if key in self._found:
            return self._found[key]
        if len(self._found) >= ENTITIES_MAX:
            # It can all be found again. What was counted must not be lost.
            self._found.clear()
        found = None
        limited = find_limit(self._limits, kind.value, user, client_id)
        if limited is not None:
            limit, shared_by = limited
            found = _Limited(limit, self._rate(kind, user, shared_by))
        self._found[key] = found
        return found

    def _rate(self, kind: QuotaKind, user: str, shared_by: tuple[str, str]) -> Rate:
        """Return what was counted for those who share a limit. `user` is one of them."""
        key = (kind, *shared_by)
        if key in self._rates:
            return self._rates[key][0]
        if self._is_full(user):
            self._forget_idle()
        rate = Rate(self._samples_max, self._sample_ms)
        if self._is_full(user):
            return self._others.setdefault((kind, user), rate)
        self._rates[key] = rate, user
        self._counts[user] += 1
        return rate

    def _is_full(self, user: str) -> bool:
        return self._counts[user] >= ENTITIES_OF_A_USER_MAX or len(self._rates) >= ENTITIES_MAX

    def _forget_idle(self) -> None:
        """Forget those for whom nothing was counted lately, and no more often than in each sample."""
        if self._now_ms - self._forgot_ms < self._sample_ms:
            return
        self._forgot_ms = self._now_ms
        self._rates = {key: one for key, one in self._rates.items() if not one[0].is_idle(self._now_ms)}
        self._others = {key: one for key, one in self._others.items() if not one.is_idle(self._now_ms)}
        self._counts = Counter(user for _, user in self._rates.values())
        self._found.clear()
