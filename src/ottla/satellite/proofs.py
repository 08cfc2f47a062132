"""How instances prove to each other that they are instances of one satellite.

Everybody who may read the group through which instances find each other can join it. So what a member of the
group says of itself proves nothing. All instances share a key, in a topic that only they can read.

Before an instance sends anything, it asks the other one to sign a number that was never used before, together
with the URL at which it was asked: who passes the question on to a real instance gets an answer for the wrong
URL. The request is signed then, so that the other one knows whom it comes from without a password.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

PATH: Final = "/ottla/instance"
CHALLENGE: Final = "x-ottla-challenge"
PROOF: Final = "x-ottla-proof"
TIME: Final = "x-ottla-time"
USER: Final = "x-ottla-user"
DIGEST: Final = "x-ottla-digest"
# Clocks of machines differ a little. For this long, what was seen is remembered.
_WINDOW_MS: Final = 300_000
_SEEN_MAX: Final = 100_000

Keys = Callable[[], Sequence[bytes]]
"""Returns the keys that count now, the newest first."""


def proof_of_instance(key: bytes, url: str, nonce: str) -> str:
    """Return the answer of an instance with this URL to a question."""
    return _sign(key, (b"instance", url.encode(), nonce.encode()))


def proof_of_request(
    key: bytes, url: str, method: str, target: str, user: str, time_ms: int, digest: str
) -> str:
    """Return the signature of a request to the instance with this URL.

    `target` is its path and query, `digest` that of its body.
    """
    parts = (b"request", *(part.encode() for part in (url, method, target, user, str(time_ms), digest)))
    return _sign(key, parts)


def _sign(key: bytes, parts: Iterable[bytes]) -> str:
    # The key signs other things too, as Kafka Connect does.
    own = hmac.digest(key, b"ottla: instances of one satellite", "sha256")
    message = b"".join(len(part).to_bytes(4) + part for part in parts)
    return hmac.new(own, message, hashlib.sha256).hexdigest()


def digest_of(body: bytes | bytearray) -> str:
    """Return what stands for a body in a signature."""
    return hashlib.sha256(body).hexdigest()


class Seen:
    """Signatures that were seen. What comes a second time is not from an instance."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, int] = OrderedDict()

    def is_new(self, proof: str, time_ms: int, now_ms: int) -> bool:
        """Say whether a signature is of this time and was not seen. It is seen then."""
        while self._times and next(iter(self._times.values())) < now_ms - 2 * _WINDOW_MS:
            self._times.popitem(last=False)
        if abs(now_ms - time_ms) > _WINDOW_MS or proof in self._times or len(self._times) >= _SEEN_MAX:
            return False
        self._times[proof] = now_ms
        return True


def is_signed(keys: Sequence[bytes], given: str, expected: Callable[[bytes], str]) -> bool:
    """Say whether a signature was made with one of these keys."""
    return any(hmac.compare_digest(given.encode(), expected(key).encode()) for key in keys)
