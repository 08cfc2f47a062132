"""SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677): both sides prove that they know the password.

    client  n,,n=user,r=NONCE[,tokenauth=true]
    server  r=NONCE+MORE,s=SALT,i=ITERATIONS
    client  c=biws,r=NONCE+MORE,p=PROOF
    server  v=SIGNATURE

Stored are two keys, by which a proof can be checked but from which nobody can log in. A user that does not
exist gets a challenge like any other, always the same for a name, and fails where a wrong password does.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import Challenge, Identity, LoginFailed
from ottla.wire.sasl.login import ITERATIONS_MIN, SCRAM_HASHES

MECHANISM_CODES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The codes of mechanisms in metadata records and requests."""
_FIRST: Final = re.compile(r"n,(?:a=([^,]*))?,(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)((?:,[A-Za-z]+=[^,]*)*))")
_FINAL: Final = re.compile(
    r"(c=[A-Za-z0-9+/=]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]+=[^,]*)*),p=([A-Za-z0-9+/=]+)"
)


class ScramCredential(NamedTuple):
    """What is stored of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class ScramAccount(NamedTuple):
    """A credential, and the principal that has logged in if it is proven."""

    credential: ScramCredential
    identity: Identity


FindAccount = Callable[[str, bool], ScramAccount | None]
"""Return the account of a user or, if the second is true, of a delegation token."""

Disguise = Callable[[str, bool], ScramCredential]
"""Return what a user, or a token, seems to have that does not exist."""


def derive_credential(mechanism: str, password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return what is stored of a password."""
    name = SCRAM_HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramCredential(
        salt,
        hashlib.new(name, client_key).digest(),
        hmac.digest(salted, b"Server Key", name),
        iterations,
    )


class ScramConversation:
    """One login by SCRAM."""

    def __init__(
        self,
        mechanism: str,
        find_account: FindAccount,
        nonce: str,
        disguise: Disguise,
    ) -> None:
        """`nonce` is random; `disguise` says what a user that does not exist looks like."""
        self._hash = SCRAM_HASHES[mechanism]
        self._find_account = find_account
        self._nonce = nonce
        self._disguise = disguise
        self._account: ScramAccount | None = None
        self._signed = ""
        self.user = ""

    def receive(self, token: bytes) -> Challenge:
        """Take the first or the final message."""
        try:
            text = token.decode()
        except UnicodeDecodeError as error:
            raise LoginFailed("the token is not UTF-8") from error
        return self._receive_final(text) if self._signed else self._receive_first(text)

    def _receive_first(self, text: str) -> Challenge:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise LoginFailed("the client's first SCRAM message is invalid")
        authorization_id, bare, name, nonce, extensions = match.groups()
        self.user = _user_name(name)
        if authorization_id and _user_name(authorization_id) != self.user:
            raise LoginFailed(f"{self.user!r} may not act for another")
        is_token = ",tokenauth=true" in extensions.lower()
        self._account = self._find_account(self.user, is_token)
        # Made for users that exist as well: otherwise the time would tell.
        disguise = self._disguise(self.user, is_token)
        credential = disguise if self._account is None else self._account.credential
        if credential.iterations < ITERATIONS_MIN:
            raise LoginFailed(f"the credential of {self.user!r} has too few iterations")
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._signed = f"{bare},{answer}"
        return Challenge(answer.encode())

    def _receive_final(self, text: str) -> Challenge:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise LoginFailed("the client's final SCRAM message is invalid")
        without_proof, nonce, proof_text = match.groups()
        if not hmac.compare_digest(nonce, self._nonce):
            raise LoginFailed("the nonce is not the one of this login")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except binascii.Error as error:
            raise LoginFailed("the proof is not base64") from error
        signed = f"{self._signed},{without_proof}".encode()
        account = self._account
        stored_key = bytes(hashlib.new(self._hash).digest_size)
        if account is not None:
            stored_key = account.credential.stored_key
        signature = hmac.digest(stored_key, signed, self._hash)
        if len(proof) != len(signature):
            raise LoginFailed("the proof has the wrong length")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), stored_key)
        if account is None or not is_right:
            raise LoginFailed(f"wrong user or password for {self.user!r}")
        verifier = hmac.digest(account.credential.server_key, signed, self._hash)
        return Challenge(b"v=" + base64.b64encode(verifier), account.identity)


def _user_name(escaped: str) -> str:
    """Return a name as it was before `=` and `,` were replaced. Kafka allows ASCII only."""
    if not escaped.isascii() or not escaped:
        raise LoginFailed("the user name is empty or not ASCII")
    name = escaped.replace("=2C", ",").replace("=3D", "\0")
    if "=" in name:
        raise LoginFailed("the user name has an `=` that is not escaped")
    return name.replace("\0", "=")
