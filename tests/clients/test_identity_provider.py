"""What nodes and clients ask of an identity provider that leads elsewhere."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from ottla.client.bearer_tokens import BearerTokens
from ottla.client.errors import AuthenticationFailed
from ottla.runtime.identity_provider import read_bearer_token, read_jwks
from ottla.wire.sasl.bearer_tokens import NoBearerToken, TokenSource


@contextmanager
def _provider() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Yield the URL of a server that sends everybody from /elsewhere to /here, and what it was asked."""
    asked: list[tuple[str, str | None]] = []

    class Provider(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200 if self.path == "/here" else 302)
            self.send_header("Location", "/here")
            self.end_headers()
            self.wfile.write(b'{"keys": [], "access_token": "t"}')

        do_POST = do_GET  # noqa: N815 - its name for the base class

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (read_bearer_token, NoBearerToken),
        (lambda source: asyncio.run(BearerTokens(source).current()), AuthenticationFailed),
    ],
)
def test_a_secret_follows_no_redirection(read: Callable[[TokenSource], str], error: type[Exception]) -> None:
    with _provider() as (url, asked):
        assert read(TokenSource(f"{url}/here", "client", "secret")) == "t"
        with pytest.raises(error, match="302"):
            read(TokenSource(f"{url}/elsewhere", "client", "secret"))
        assert [path for path, _ in asked] == ["/here", "/elsewhere"]
        assert all(authorization is not None for _, authorization in asked)


def test_public_keys_may_be_elsewhere() -> None:
    with _provider() as (url, asked):
        assert b"keys" in read_jwks(f"{url}/elsewhere")
        assert asked == [("/elsewhere", None), ("/here", None)]
