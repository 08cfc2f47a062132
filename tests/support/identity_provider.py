"""An identity provider for tests: public keys at /keys, tokens for clients that know the secret at /token."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from ottla.testing.ports import free_port

ISSUER = "https://issuer.example"
AUDIENCE = "kafka"
CLIENT_SECRET = "a client's secret"


class IdentityProvider:
    """Serves HTTP on loopback while it is entered. Tokens can also be made without it."""

    def __init__(self) -> None:
        self.key_id = "first"
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.tokens_given = 0
        self.lifetime_s = 3600
        self._port = free_port()
        self.keys_url = f"http://127.0.0.1:{self._port}/keys"
        self.token_url = f"http://127.0.0.1:{self._port}/token"

    def change_key(self, key_id: str) -> None:
        """Sign with another key from now on."""
        self._key, self.key_id = rsa.generate_private_key(public_exponent=65537, key_size=2048), key_id

    def keys(self) -> str:
        """Return the public keys as JSON."""
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**public, "kid": self.key_id, "use": "sig", "alg": "RS256"}]})

    def token(self, subject: str, **claims: Any) -> str:
        """Return a signed token. A claim of None is left out."""
        now = int(time.time())
        payload = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + self.lifetime_s}
        payload |= claims
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, self._key, algorithm="RS256", headers={"kid": self.key_id})

    def token_file(self, path: Path, subject: str) -> str:
        """Write a token to a file, and return the URL of that."""
        path.write_text(self.token(subject) + "\n")
        return path.as_uri()

    def _handler(provider) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200 if self.path == "/keys" else 404, provider.keys())

            def do_POST(self) -> None:
                body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                kind, _, given = self.headers["Authorization"].partition(" ")
                user, _, secret = base64.b64decode(given).decode().partition(":")
                is_right = kind == "Basic" and secret == CLIENT_SECRET.replace(" ", "+").replace("'", "%27")
                if not is_right or body != {"grant_type": ["client_credentials"], "scope": ["kafka"]}:
                    self._answer(401, json.dumps({"error": "invalid_client"}))
                    return
                provider.tokens_given += 1
                self._answer(200, json.dumps({"access_token": provider.token(user), "token_type": "Bearer"}))

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
