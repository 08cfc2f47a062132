"""What a satellite tells Prometheus of itself, at `/metrics`."""

import asyncio
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SEEN: Final = "ottla.seen"
"""Where a request has what is counted of it."""
# All paths that are not known count as one: anybody could make any number of them.
_NO_ROUTE: Final = "other"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))


class Seen:
    """What is counted of one request."""

    __slots__ = ("route", "status")

    def __init__(self) -> None:
        self.route = _NO_ROUTE
        self.status = 0


class Metrics:
    """The metrics of one satellite."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        self._requests = Counter(
            "ottla_satellite_requests",
            "Requests that were answered. Route: other for those that no route was looked for.",
            ["method", "route", "status"],
            registry=self._all,
        )
        self._seconds = Histogram(
            "ottla_satellite_request_seconds",
            "Time from the arrival of a request to its answer.",
            ["route"],
            registry=self._all,
        )

    def count(self, method: str, seen: Seen, seconds: float) -> None:
        """Count a request."""
        known = method if method in _METHODS else _NO_ROUTE
        self._requests.labels(known, seen.route, str(seen.status)).inc()
        self._seconds.labels(seen.route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self._all)


class MetricsDoor:
    """Counts all requests, also those that are refused."""

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count it when it is answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen, loop = Seen(), asyncio.get_running_loop()
        began_s = loop.time()

        async def watched(message: Any) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            await send(message)

        try:
            await self._app({**scope, SEEN: seen}, receive, watched)
        finally:
            self._metrics.count(scope["method"], seen, loop.time() - began_s)
