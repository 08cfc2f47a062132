"""The client's side of a login, for the connections of nodes to each other: PLAIN and SCRAM.

Both sides of SCRAM prove that they know the password. A server that cannot is not trusted.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final, Protocol

from ottla.security.sasl.mechanism import LoginFailed
from ottla.security.sasl.scram import HASHES, ITERATIONS_MIN

ITERATIONS_MAX: Final = 1_000_000
"""More would only keep this node busy."""
MECHANISMS: Final = ("PLAIN", *HASHES)


class LoginClient(Protocol):
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

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self._expected: bytes | None = None

    def first(self) -> bytes:
        """Return who wants to log in."""
        return f"n,,{self._first}".encode()

    def receive(self, token: bytes) -> bytes | None:
        """Prove that this node knows the password, then see whether the server does."""
        try:
            fields = dict(part.split("=", 1) for part in token.decode().split(",") if "=" in part)
            if self._expected is None:
                return self._prove(token.decode(), fields)
            given = base64.b64decode(fields.get("v", ""), validate=True)
        except (UnicodeDecodeError, binascii.Error, ValueError, KeyError) as error:
            raise LoginFailed("the server sent an invalid SCRAM message") from error
        if not hmac.compare_digest(given, self._expected):
            raise LoginFailed("the server does not know the password: do not trust it")
        return None

    def _prove(self, server_first: str, fields: dict[str, str]) -> bytes:
        nonce, iterations = fields["r"], int(fields["i"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise LoginFailed("the server sent a wrong SCRAM nonce: do not trust it")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise LoginFailed(f"the server asks for {iterations} iterations: do not trust it")
        salt = base64.b64decode(fields["s"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first},{server_first},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._expected = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
