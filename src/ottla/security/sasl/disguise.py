"""What users that do not exist look like: their challenges are like those of users that do.

An answer must not tell which users there are, also not to somebody who compares those of several nodes. So
every node makes the same challenge for a name. The secret behind it is replicated and unknown outside: the
server keys in the credentials of the users that there are. Each name borrows from two of them, which make its
salt; the first lends it its length and its number of iterations as well. One is not enough, since every user
knows its own keys. Names share the users among them evenly, so that lengths and numbers are as frequent among
those that do not exist as among those that do; and when a user comes or goes, or has a new password, only the
names that borrow from it change.
"""

import hmac
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final

from ottla.security.sasl.scram import ScramCredential

MODELS_MAX: Final = 64
"""From how many users names borrow: each login looks at all of them, whether its user exists or not."""
DEFAULT_ITERATIONS: Final = 8192
"""As `ottla user set` has them, and salts. They count only while there is no user to borrow from."""
_SALT_BYTES: Final = 24
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


def choose_models(users: Iterable[tuple[str, ScramCredential]]) -> tuple[ScramCredential, ...]:
    """Return the credentials to borrow from: on each node the same, in the same order."""
    chosen = nsmallest(MODELS_MAX, users, key=lambda user: user[0])
    return tuple(credential for _, credential in chosen)


def disguise(user: str, models: Sequence[ScramCredential], own_key: bytes) -> ScramCredential:
    """Return what a user seems to have. `own_key` is a secret for when there is nobody to borrow from.

    Nobody can log in with it: it has no keys.
    """
    name = user.encode()
    lenders = nsmallest(2, models, key=lambda model: hmac.digest(model.server_key, name, "sha256"))
    key = b"".join(lender.server_key for lender in lenders) or own_key
    secret = hmac.digest(key, b"salt of " + name, "sha512")
    if not lenders:
        return ScramCredential(secret[:_SALT_BYTES], b"", b"", DEFAULT_ITERATIONS)
    lender = lenders[0]
    size = len(lender.salt)
    salt = (secret * (1 + size // len(secret)))[:size]
    if lender.salt.isalnum():
        # Kafka's tools write salts as digits and small letters.
        salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
    return ScramCredential(salt, b"", b"", lender.iterations)
