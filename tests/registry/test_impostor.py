"""Somebody who may only read the group becomes its writer, and gets nothing."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.client.admin.settings import AdminSettings
from ottla.client.security import cluster_for
from ottla.registry.leading.election import Election
from ottla.registry.leading.protocol import Identity
from ottla.testing.ports import free_port

LOGIN = {"Authorization": "Basic YW5uOnNlY3JldA=="}


@contextmanager
def _impostor(heard: list[str]) -> Iterator[int]:
    """Listen for whatever instances send to their leader."""

    class Listening(BaseHTTPRequestHandler):
        def _take(self) -> None:
            heard.append(f"{self.command} {self.path} {dict(self.headers)}")
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_DELETE = _take  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", free_port()), Listening) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_who_joins_the_group_and_claims_to_write_gets_no_request_and_no_password(
    node: OttlaNode, tmp_path: Path
) -> None:
    heard: list[str] = []
    (tmp_path / "users").write_text("ann: secret\n")
    (tmp_path / "users").chmod(0o600)
    options = ("--topic", "_wanted", "--group", "wanted", "--users", str(tmp_path / "users"), "--never-write")

    async def claim(port: int) -> tuple[int, dict[str, object]]:
        cluster = cluster_for(AdminSettings.of({"bootstrap.servers": node.bootstrap}))
        await cluster.start()
        chosen = asyncio.Event()

        async def note(leader: Identity | None) -> None:
            if leader is not None:
                chosen.set()

        election = Election(cluster, "wanted", Identity("127.0.0.1", port), note)
        election.start()
        try:
            await asyncio.wait_for(chosen.wait(), 60)
            return await asyncio.to_thread(
                registry.ask, "POST", "/subjects/s/versions", {"schema": '"int"'}, **LOGIN
            )
        finally:
            await election.stop()
            await cluster.close()

    # The key is there: an instance that writes has been in the group.
    with RegistryProcess(node.bootstrap, *options[:-1]) as writer:
        assert writer.ask("POST", "/subjects/first/versions", {"schema": '"int"'}, **LOGIN)[0] == 200
    with _impostor(heard) as port, RegistryProcess(node.bootstrap, *options) as registry:
        status, answer = asyncio.run(claim(port))
    assert (status, answer["error_code"]) == (500, 50003), answer
    assert "has not proved" in str(answer["message"])
    assert [line.split()[:2] for line in heard] == [["GET", "/ottla/instance"]]
    assert "Basic" not in str(heard)
