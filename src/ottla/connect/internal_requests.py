"""Requests of workers to each other: forwarded ones, and those with the tasks of a connector.

The key is the one that the leader has put into the config topic, which only workers can read. With it,
workers prove that they are workers (`ottla.satellite.proofs`). Requests with tasks have Kafka Connect's own
signature as well, an HMAC of the body, so that workers of Kafka take them and send them.
"""

import base64
import hashlib
import hmac
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import httpx

from ottla.client import surroundings
from ottla.connect.errors import ConnectError, RestError
from ottla.connect.store.configs import ConfigState
from ottla.connect.store.records import encode_json
from ottla.satellite.instances import Instances, NotSent

SIGNATURE: Final = "x-connect-authorization"
ALGORITHM: Final = "x-connect-request-signature-algorithm"
_TIMEOUT_S: Final = 90.0


class InternalRequests:
    """What this worker sends to others, and checks of what they send."""

    def __init__(
        self,
        url: str,
        configs: ConfigState,
        find_leader: Callable[[], str | None],
        tls: ssl.SSLContext,
        *,
        trusts_group: bool,
    ) -> None:
        """`url` is this worker's. `configs` has the key, and `find_leader` returns the leader's URL."""
        self._configs = configs
        self._find_leader = find_leader
        self.instances = Instances(
            url,
            self._keys,
            tls,
            surroundings.now_ms,
            timeout_s=_TIMEOUT_S,
            trusts_group=trusts_group,
        )

    def _keys(self) -> list[bytes]:
        known = (self._configs.session_key, self._configs.previous_session_key)
        return [base64.b64decode(key.key) for key in known if key is not None]

    async def send(
        self,
        method: str,
        url: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
        user: str | None = None,
    ) -> httpx.Response:
        """Send a request to another worker. Raises RestError."""
        try:
            return await self.instances.send(url, method, target, body, headers, user)
        except (httpx.HTTPError, NotSent) as error:
            raise RestError(500, f"IO Error trying to forward REST request: {error!r}") from error

    async def send_tasks(self, name: str, tasks: list[dict[str, str]]) -> None:
        """Send the configurations of tasks to the leader. Raises ConnectError or RestError."""
        answer = await self._ask_leader("POST", f"{quote(name, safe=':')}/tasks", encode_json(tasks))
        if answer.status_code >= 300:
            raise ConnectError(f"the leader did not take the tasks of {name}: {answer.text}")

    async def send_fencing(self, name: str) -> None:
        """Have the leader fence earlier tasks of a source. Raises ConnectError or RestError."""
        answer = await self._ask_leader("PUT", f"{quote(name, safe=':')}/fence", b"")
        if answer.status_code >= 300:
            raise ConnectError(f"the leader did not fence the earlier tasks of {name}: {answer.text}")

    async def _ask_leader(self, method: str, path: str, body: bytes) -> httpx.Response:
        leader, key = self._find_leader(), self._configs.session_key
        if leader is None or key is None:
            raise ConnectError("the leader of the workers is not known yet")
        headers = {
            "content-type": "application/json",
            SIGNATURE: base64.b64encode(_signature(base64.b64decode(key.key), body)).decode(),
            ALGORITHM: key.algorithm,
        }
        return await self.send(method, leader, f"/connectors/{path}?forward=false", body, headers)

    def check(self, headers: Mapping[str, str], body: bytes, *, is_forwarded: bool) -> None:
        """Refuse a request that no worker has signed. Raises RestError."""
        given = headers.get(SIGNATURE)
        if given is None:
            if is_forwarded:
                return
            raise RestError(400, "Internal request missing required signature")
        try:
            sent = base64.b64decode(given, validate=True)
        except ValueError:
            sent = b""
        if not any(hmac.compare_digest(sent, _signature(key, body)) for key in self._keys()):
            raise RestError(403, "Internal request contained invalid signature.")


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.new(key, body, hashlib.sha256).digest()
