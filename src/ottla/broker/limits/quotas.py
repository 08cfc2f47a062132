"""Client quotas: bytes written, bytes read and request time, for each user and client id.

A client that is over a quota is answered at once, asked to wait, and not read from for that long. The time is
chosen as Kafka chooses it: so long that the rate, over its window, would fall to the limit.

Which quota holds for a client is a matter of the metadata (`quota_limits`). The quota on partitions that are
created and deleted is the controller's.

Pure: time comes with each call.
"""

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
        self._rates: dict[tuple[QuotaKind, str, str], Rate] = {}
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
            self._found.clear()
            self._rates.clear()
        found = None
        limited = find_limit(self._limits, kind.value, user, client_id)
        if limited is not None:
            limit, shared_by = limited
            rate = self._rates.setdefault((kind, *shared_by), Rate(self._samples_max, self._sample_ms))
            found = _Limited(limit, rate)
        self._found[key] = found
        return found
