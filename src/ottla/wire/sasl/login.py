"""The client's side of a login: PLAIN, SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628).

Clients use it, and nodes that log in to each other. Both sides of SCRAM prove that they know the password,
and neither says it. A server that cannot prove it is not trusted.
"""

import base64
import hashlib
import hmac
from typing import Final, Protocol

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each mechanism."""
MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES, "OAUTHBEARER")
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 1_000_000
"""The server chooses the iterations. A hostile one could keep us busy for hours."""
_INVALID: Final = "it sent an invalid SCRAM message: do not trust it"


class UntrustedServer(Exception):
    """A server that does not answer as it should. The message is a part of a sentence about it."""


class Login(Protocol):
    """One login by one mechanism."""

    def first(self) -> bytes:
        """Return the first token to send."""

    def receive(self, token: bytes) -> bytes | None:
        """Take what the server answers. Return the next token; None if the login is complete."""


class PlainLogin:
    """A login by PLAIN."""

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """Return user and password."""
        return self._token

    def receive(self, _token: bytes) -> bytes | None:
        """There is nothing more to say."""
        return None


class ScramLogin:
    """A login by SCRAM."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str, *, is_token: bool = False
    ) -> None:
        """`nonce` is random. With `is_token`, the user is the id of a delegation token."""
        self._hash = SCRAM_HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}" + (",tokenauth=true" if is_token else "")
        self._expected: bytes | None = None

    def first(self) -> bytes:
        """Return who wants to log in."""
        return f"n,,{self._first}".encode()

    def receive(self, token: bytes) -> bytes | None:
        """Prove that this side knows the password, then see whether the server does."""
        fields = _fields(token)
        if self._expected is None:
            return self._prove(token.decode(), fields)
        if not hmac.compare_digest(_decoded(fields.get("v", "")), self._expected):
            raise UntrustedServer("it could not prove that it knows the password: do not trust it")
        return None

    def _prove(self, server_first: str, fields: dict[str, str]) -> bytes:
        nonce, iterations, salt = _challenge(fields)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise UntrustedServer("it sent a wrong SCRAM nonce: do not trust it")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise UntrustedServer(
                f"it asks for {iterations} SCRAM iterations, which is out of range: do not trust it"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first},{server_first},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._expected = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def _fields(token: bytes) -> dict[str, str]:
    try:
        return dict(part.split("=", 1) for part in token.decode().split(",") if "=" in part)
    except UnicodeDecodeError as error:
        raise UntrustedServer(_INVALID) from error


def _challenge(fields: dict[str, str]) -> tuple[str, int, bytes]:
    """Return the nonce, the iterations and the salt that a server asks for."""
    iterations = fields.get("i", "")
    if not iterations.isdecimal() or len(iterations) > len(str(ITERATIONS_MAX)):
        raise UntrustedServer(_INVALID)
    return fields.get("r", ""), int(iterations), _decoded(fields.get("s", ""))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise UntrustedServer(_INVALID) from error


class BearerLogin:
    """A login by OAUTHBEARER: the token was signed by somebody whom the server trusts."""

    def __init__(self, bearer_token: str) -> None:
        self._token = bearer_token

    def first(self) -> bytes:
        """Return the token."""
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def receive(self, token: bytes) -> bytes | None:
        """See whether it was accepted. What a server says otherwise is acknowledged, and then it refuses."""
        return b"\x01" if token else None
