"""Delegation tokens: secrets that a server can make again from their ids, so that none is stored."""

import base64
import hashlib
import hmac
from typing import Final

from ottla.security.sasl.scram import ScramCredential, derive_credential
from ottla.wire.sasl.login import ITERATIONS_MIN

CREDENTIALS_MAX: Final = 1_000
"""How many credentials are remembered: to derive one takes a few milliseconds."""
_SALT_BYTES: Final = 20


class TokenKeys:
    """The secrets of tokens, made with `delegation.token.secret.key`."""

    def __init__(self, secret_key: str) -> None:
        self._key = secret_key.encode()
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def hmac(self, token_id: str) -> bytes:
        """Return the secret of a token."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def credential(self, token_id: str, mechanism: str) -> ScramCredential:
        """Return what a login with a token is checked by: its password is the secret in base64."""
        known = self._credentials.get((token_id, mechanism))
        if known is None:
            if len(self._credentials) >= CREDENTIALS_MAX:
                self._credentials.clear()
            password = base64.b64encode(self.hmac(token_id))
            known = derive_credential(mechanism, password, self._salt(token_id), ITERATIONS_MIN)
            self._credentials[token_id, mechanism] = known
        return known

    def disguise(self, token_id: str) -> ScramCredential:
        """Return what a token that does not exist seems to have. Nobody can log in with it."""
        return ScramCredential(self._salt(token_id), b"", b"", ITERATIONS_MIN)

    def _salt(self, token_id: str) -> bytes:
        return hashlib.sha256(self._key + token_id.encode()).digest()[:_SALT_BYTES]
