"""Records from and to an HTTP server, which fails at first."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

from ottla.testing.ports import free_port


class _Server(ThreadingHTTPServer):
    """Gives numbers from a position on, and keeps what it is sent, the second time it is sent."""

    refused: set[str]
    received: list[tuple[str, bytes]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        first = int(self.path.rpartition("=")[2])
        self._answer(200, {"data": {"items": [{"id": n} for n in range(first + 1, min(first + 3, 6))]}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"]
        if key not in self.server.refused:
            self.server.refused.add(key)
            self._answer(503, {})
            return
        self.server.received.append((key, body))
        self._answer(200, {})

    def _answer(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    running = _Server(("127.0.0.1", free_port()), _Handler)
    running.refused, running.received = set(), []
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def test_records_come_and_go_and_are_sent_again_until_they_arrive(
    worker: ConnectProcess, node: OttlaNode, server: _Server, name: str
) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    converters = {
        "value_converter": "org.apache.kafka.connect.json.JsonConverter",
        "value_converter_schemas_enable": "false",
    }
    worker.create(
        f"{name}-in",
        connector_class="HttpSource",
        http_url=f"{url}/items?after=${{offset}}",
        http_records_pointer="/data/items",
        http_offset_field="id",
        topic=name,
        poll_interval_ms="50",
        **converters,
    )
    worker.create(
        f"{name}-out",
        connector_class="HttpSink",
        http_url=f"{url}/${{topic}}",
        topics=name,
        errors_retry_timeout="-1",
        **converters,
    )

    records = read_topic(node.bootstrap, name, 5)

    assert [json.loads(record.value)["id"] for record in records] == [1, 2, 3, 4, 5]
    worker.wait_for("/", lambda _: len(server.received) >= 5)
    assert [json.loads(body)["id"] for _, body in server.received] == [1, 2, 3, 4, 5]
    assert server.received[0][0] == f"{name}-out/{name}/0/0"
    assert worker.ask("DELETE", f"/connectors/{name}-in") == (204, None)
    assert worker.ask("DELETE", f"/connectors/{name}-out") == (204, None)
