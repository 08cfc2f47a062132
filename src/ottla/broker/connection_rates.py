"""How many connections may be made per second: in all, and from one address (KIP-612).

Over `max.connection.creation.rate` the node accepts nobody for a while: who waits in the backlog is served
later. An address over its `connection_creation_rate` is turned away, and its socket is closed late, so that
it does not come again at once. Rates and times are Kafka's; none is longer than one window.

Pure: time comes with each call.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from ottla.broker.rate import Rate
from ottla.metadata.image import QuotaEntity
from ottla.runtime.listener import Admission

KEY: Final = "connection_creation_rate"
UNLIMITED: Final = 0x7FFFFFFF
ADDRESSES_MAX: Final = 10_000
"""How many addresses are followed."""


def _in_short(address: str | None) -> str | None:
    """Return an address as sockets tell it. Names of hosts, which Apache Kafka may have left, stay names."""
    try:
        return address and str(ip_address(address))
    except ValueError:
        return address


class ConnectionRates:
    """Counts connections, and says who has to wait."""

    def __init__(self, samples_max: int, sample_ms: int) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        self._limit = UNLIMITED
        self._all = Rate(samples_max, sample_ms)
        self._limits: dict[str | None, float] = {}
        self._by_address: dict[str, Rate] = {}

    def use(self, limit: int, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take new limits. What was counted stays counted."""
        self._limit = limit
        self._limits = {
            _in_short(entity[0][1]): values[KEY]
            for entity, values in quotas.items()
            if entity[0][0] == "ip" and KEY in values
        }

    def admit(self, peer_host: str, now_ms: int) -> Admission:
        """Count a connection, and say what is to become of it."""
        limit = self._limits.get(peer_host, self._limits.get(None))
        if limit is not None:
            rate = self._rate_of(peer_host)
            close_after_ms = self._count(rate, limit, now_ms)
            if close_after_ms > 0:
                # It is turned away, so it does not count.
                rate.record(-1, now_ms)
                return Admission(0, close_after_ms)
        if self._limit == UNLIMITED:
            return Admission(0, 0)
        return Admission(self._count(self._all, self._limit, now_ms), 0)

    def _rate_of(self, peer_host: str) -> Rate:
        rate = self._by_address.get(peer_host)
        if rate is None:
            if len(self._by_address) >= ADDRESSES_MAX:
                self._by_address.clear()
            rate = self._by_address[peer_host] = Rate(self._samples_max, self._sample_ms)
        return rate

    def _count(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        measured = rate.per_second(now_ms)
        if measured <= limit:
            return 0
        if limit <= 0:
            return self._sample_ms
        return min(round((measured - limit) / limit * rate.window_ms(now_ms)), self._sample_ms)
