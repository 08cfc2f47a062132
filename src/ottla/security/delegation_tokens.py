"""Delegation tokens: secrets that a server can make again from their ids, so that none is stored."""

import base64
import hashlib
import hmac
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from ottla.security.sasl.scram import ScramCredential, derive_credential
from ottla.wire.sasl.login import ITERATIONS_MIN

CREDENTIALS_MAX: Final = 1_000
"""How many credentials are remembered: to derive one takes a few milliseconds."""
_SALT_BYTES: Final = 20
_FORGOTTEN_MIN: Final = 1_000
"""So many tokens that are gone are not worth being forgotten."""


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


class TokensBySecret:
    """Finds tokens by their secrets, without making the secrets of all of them each time.

    Everybody may ask the controller to renew a token, with a secret that is not one of any token.
    """

    def __init__(self, secret_key: str) -> None:
        self._keys = TokenKeys(secret_key)
        # By digests, since the time of a look-up tells a little of what it compares.
        self._ids: dict[bytes, str] = {}
        self._known: set[str] = set()

    def find(self, token_ids: Collection[str], secret: bytes) -> str | None:
        """Return the id among these whose secret this is."""
        if len(self._known) > 2 * len(token_ids) + _FORGOTTEN_MIN:
            self._ids.clear()
            self._known.clear()
        for token_id in set(token_ids) - self._known:
            self._ids[_digest(self._keys.hmac(token_id))] = token_id
            self._known.add(token_id)
        found = self._ids.get(_digest(secret))
        return found if found in token_ids else None


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


@lru_cache(maxsize=4)
def tokens_by_secret(secret_key: str) -> TokensBySecret:
    """Return what finds tokens whose secrets are made with a key."""
    return TokensBySecret(secret_key)
