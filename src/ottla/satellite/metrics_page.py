"""Metrics for Prometheus on loopback, served by threads of a process that does something else.

Anybody on the machine can connect, and so can web pages that somebody on the machine reads. So there are
bounds on connections and on their time, and pages are refused as by satellites.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from ottla.satellite.origins import find_refusal

HOST: Final = "127.0.0.1"
_NAMES: Final = frozenset(("localhost",))
_AT_ONCE: Final = 8
_CONNECTION_S: Final = 10.0
_REFUSED: Final = (
    f"Metrics are for this machine: ask http://{HOST} and this port, by its address and from no web page.\n"
)
_HEADERS: Final = ("host", "origin", "sec-fetch-site", "sec-fetch-mode")


class _Handler(WSGIRequestHandler):
    timeout = _CONNECTION_S

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class MetricsPage(WSGIServer):
    """Some connections at a time; others wait. None lasts for long."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.Semaphore(_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, when one is free."""
        self._free.acquire()
        threading.Thread(target=self._serve, args=(request, client_address), daemon=True).start()

    def _serve(self, request: Any, client_address: Any) -> None:
        # Each wait for bytes has a bound, but somebody may send one byte after the other.
        deadline = threading.Timer(_CONNECTION_S, _hang_up, (request,))
        deadline.start()
        try:
            self.finish_request(request, client_address)
        except OSError:
            # The other side is gone, or its time is over.
            pass
        finally:
            deadline.cancel()
            self.shutdown_request(request)
            self._free.release()


def _hang_up(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is closed already.
        return


def serve_page(registry: CollectorRegistry, port: int) -> MetricsPage:
    """Begin to serve; 0 is a free port."""
    server = make_server(HOST, port, _guarded(make_wsgi_app(registry)), MetricsPage, _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _guarded(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        names = {name: f"HTTP_{name.upper().replace('-', '_')}" for name in _HEADERS}
        headers = {name: environ[key] for name, key in names.items() if key in environ}
        if find_refusal(environ["REQUEST_METHOD"], headers, _NAMES) is None:
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [_REFUSED.encode()]

    return guarded
