"""How many connections may be made per second: in all, to one listener, and from one address (KIP-612).

Over `max.connection.creation.rate` a listener accepts nobody for a while: clients that wait in the backlog
are served later. There is one rate for all listeners together, and each may have one of its own besides. An
address over its `connection_creation_rate` is turned away, and its socket is closed late, so that it does not
come again at once. Rates and times are Kafka's; none is longer than one window.

Pure: time comes with each call.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from ottla.broker.limits.rate import Rate
from ottla.metadata.image import QuotaEntity
from ottla.runtime.connections.listener import Admission

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
        self._listener_limits: Mapping[str, int] = {}
        self._by_listener: dict[str, Rate] = {}
        self._limits: dict[str | None, float] = {}
        self._by_address: dict[str, Rate] = {}

    def use(
        self,
        limit: int,
        listener_limits: Mapping[str, int],
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
    ) -> None:
        """Take new limits: for all, by listener, and those of addresses. What was counted stays counted."""
        self._limit = limit
        self._listener_limits = listener_limits
        self._limits = {
            _in_short(entity[0][1]): values[KEY]
            for entity, values in quotas.items()
            if entity[0][0] == "ip" and KEY in values
        }

    def admit(self, listener: str, peer_host: str, now_ms: int) -> Admission:
        """Count a connection, and say what is to become of it."""
        limit = self._limits.get(peer_host, self._limits.get(None))
        if limit is not None:
            rate = self._rate_of(peer_host, now_ms)
            close_after_ms = self._count(rate, limit, now_ms)
            if close_after_ms > 0:
                # It is turned away, so it does not count.
                rate.record(-1, now_ms)
                return Admission(0, close_after_ms)
        pause_ms = 0
        if self._limit != UNLIMITED:
            pause_ms = self._count(self._all, self._limit, now_ms)
        if (listener_limit := self._listener_limits.get(listener, UNLIMITED)) != UNLIMITED:
            rate = self._by_listener.setdefault(listener, Rate(self._samples_max, self._sample_ms))
            pause_ms = max(pause_ms, self._count(rate, listener_limit, now_ms))
        return Admission(pause_ms, 0)

    def _rate_of(self, peer_host: str, now_ms: int) -> Rate:
        rate = self._by_address.get(peer_host)
        if rate is None:
            if len(self._by_address) >= ADDRESSES_MAX:
                self._forget(now_ms)
            rate = self._by_address[peer_host] = Rate(self._samples_max, self._sample_ms)
        return rate

    def _forget(self, now_ms: int) -> None:
        """Forget who has not connected lately. If that are too few, forget who came first."""
        busy = [one for one in self._by_address.items() if not one[1].is_idle(now_ms)]
        self._by_address = dict(busy[-ADDRESSES_MAX // 2 :])

    def _count(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        measured = rate.per_second(now_ms)
        if measured <= limit:
            return 0
        if limit <= 0:
            return self._sample_ms
        return min(round((measured - limit) / limit * rate.window_ms(now_ms)), self._sample_ms)
