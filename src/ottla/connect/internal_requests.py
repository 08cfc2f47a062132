"""Requests of workers to each other: forwarded ones, and signed ones with the tasks of a connector.

The signature is that of Kafka Connect: an HMAC of the body with the key that the leader has put into the
config topic, which only workers can read.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import httpx

from ottla.connect.errors import ConnectError, RestError
from ottla.connect.store.records import encode_json

if TYPE_CHECKING:
    from ottla.connect.worker import Worker

SIGNATURE: Final = "x-connect-authorization"
ALGORITHM: Final = "x-connect-request-signature-algorithm"
_TIMEOUT_S: Final = 90.0


class InternalRequests:
    """What this worker sends to others, and checks of what they send."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request to another worker. Raises RestError."""
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False)
        try:
            return await self._client.request(method, url, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise RestError(500, f"IO Error trying to forward REST request: {error!r}") from error

    async def send_tasks(self, name: str, tasks: list[dict[str, str]]) -> None:
        """Send the configurations of tasks to the leader."""
        leader, key = self._worker.leader_url, self._worker.configs.session_key
        if leader is None or key is None:
            raise ConnectError("the leader of the workers is not known yet")
        body = encode_json(tasks)
        headers = {
            "content-type": "application/json",
            SIGNATURE: base64.b64encode(_signature(key.key, body)).decode(),
            ALGORITHM: key.algorithm,
        }
        url = f"{leader.rstrip('/')}/connectors/{_quoted(name)}/tasks?forward=false"
        answer = await self.send("POST", url, body, headers)
        if answer.status_code >= 300:
            raise ConnectError(f"the leader did not take the tasks of {name}: {answer.text}")

    def check(self, headers: Mapping[str, str], body: bytes) -> None:
        """Refuse a request that no worker has signed. Raises RestError."""
        given = headers.get(SIGNATURE)
        if given is None:
            raise RestError(400, "Internal request missing required signature")
        key = self._worker.configs.session_key
        try:
            sent = base64.b64decode(given, validate=True)
        except ValueError:
            sent = b""
        if key is None or not hmac.compare_digest(sent, _signature(key.key, body)):
            raise RestError(403, "Internal request contained invalid signature.")


def _signature(key: str, body: bytes) -> bytes:
    return hmac.new(base64.b64decode(key), body, hashlib.sha256).digest()


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe=":")
