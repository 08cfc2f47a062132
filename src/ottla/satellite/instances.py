"""This instance among the others: what it sends them, and what it takes from them."""

import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import httpx

from ottla.satellite import proofs
from ottla.satellite.proofs import CHALLENGE, DIGEST, PROOF, TIME, USER, Keys

_CHALLENGE_MAX: Final = 200


class NotSent(Exception):
    """Nothing was sent: the other side cannot be reached, or is no instance of ours."""


class NoInstance(NotSent):
    """The other side did not prove that it is an instance of ours."""


@dataclass(frozen=True)
class Forwarded:
    """A request that another instance has signed."""

    user: str | None
    digest: str


class Instances:
    """Sends requests to other instances, and knows theirs."""

    def __init__(
        self,
        url: str,
        keys: Keys,
        tls: ssl.SSLContext,
        now_ms: Callable[[], int],
        *,
        timeout_s: float,
        trusts_group: bool = False,
    ) -> None:
        self.url = url.rstrip("/")
        self._keys = keys
        self._now_ms = now_ms
        self._trusts_group = trusts_group
        self._seen = proofs.Seen()
        # Redirections are never followed: what was proved is true of this URL alone.
        self._client = httpx.AsyncClient(
            timeout=timeout_s, trust_env=False, verify=tls, follow_redirects=False
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    # What is sent.

    async def send(
        self,
        url: str,
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
        user: str | None = None,
    ) -> httpx.Response:
        """Send a request for a user to the instance with this URL, which must prove itself before.

        Raises NotSent, or httpx.HTTPError if it is not known what became of it.
        """
        url = url.rstrip("/")
        named = dict(headers)
        if not self._trusts_group:
            key = await self._ask_for_proof(url)
            time_ms, digest, shown = self._now_ms(), proofs.digest_of(body), quote(user or "", safe="")
            proof = proofs.proof_of_request(key, url, method, target, shown, time_ms, digest)
            named |= {PROOF: proof, TIME: str(time_ms), USER: shown, DIGEST: digest}
        try:
            return await self._client.request(method, f"{url}{target}", content=body, headers=named)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotSent(f"{url} cannot be reached: {error!r}") from error

    async def _ask_for_proof(self, url: str) -> bytes:
        """Return the key that the other side has shown to know. Raises NotSent."""
        nonce = secrets.token_hex(32)
        try:
            # Nothing of the body is read: somebody else who has joined the group may send one without an end.
            asked = self._client.stream("GET", f"{url}{proofs.PATH}", headers={CHALLENGE: nonce})
            async with asked as answer:
                given = answer.headers.get(PROOF, "")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotSent(f"{url} cannot be reached: {error!r}") from error
        for key in self._keys():
            if proofs.is_signed([key], given, lambda key: proofs.proof_of_instance(key, url, nonce)):
                return key
        raise NoInstance(
            f"{url} is named as the leader by the group, but has not proved that it is an instance of this "
            "cluster: nothing was sent to it. Beside instances of other makers, start with --trust-group"
        )

    # What is taken.

    def prove(self, nonce: str) -> str | None:
        """Return the proof that this is an instance. None: it has no key, or this is no question."""
        keys = self._keys()
        if not keys or not nonce or len(nonce) > _CHALLENGE_MAX:
            return None
        return proofs.proof_of_instance(keys[0], self.url, nonce)

    def read(self, method: str, target: str, headers: Mapping[str, str]) -> Forwarded | None:
        """Return what another instance says of a request. None: no instance has signed it."""
        given, user, digest = headers.get(PROOF, ""), headers.get(USER, ""), headers.get(DIGEST, "")
        try:
            time_ms = int(headers.get(TIME, ""))
        except ValueError:
            return None

        def expected(key: bytes) -> str:
            return proofs.proof_of_request(key, self.url, method, target, user, time_ms, digest)

        if not proofs.is_signed(self._keys(), given, expected):
            return None
        if not self._seen.is_new(given, time_ms, self._now_ms()):
            return None
        return Forwarded(unquote(user) or None, digest)


class InstanceDoor:
    """Answers other instances that ask for a proof, and knows requests that they have signed."""

    def __init__(self, app: Any, instances: Instances, unauthorized: Callable[[Any, Any], Any]) -> None:
        self._app = app
        self._instances = instances
        self._unauthorized = unauthorized

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, with what is known of where it comes from."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["path"] == proofs.PATH and scope["method"] == "GET":
            await self._prove(headers.get(CHALLENGE, ""), send)
            return
        if PROOF in headers:
            found = self._instances.read(scope["method"], _target(scope), headers)
            if found is None:
                await self._unauthorized(scope, send)
                return
            scope = {**scope, "forwarded": found, "user": found.user}
        await self._app(scope, receive, send)

    async def _prove(self, nonce: str, send: Any) -> None:
        proof = self._instances.prove(nonce)
        named = [] if proof is None else [(PROOF.encode(), proof.encode())]
        status = 404 if proof is None else 204
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": b""})


def _target(scope: Any) -> str:
    path: str = scope.get("raw_path", scope["path"].encode()).decode("latin-1").split("?")[0]
    query = scope["query_string"].decode("latin-1")
    return path + (f"?{query}" if query else "")
