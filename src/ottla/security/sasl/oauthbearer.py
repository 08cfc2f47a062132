"""OAUTHBEARER (RFC 7628): the client shows a token that somebody else has signed.

A token that is refused is not an error at once: the server says why in JSON, the client answers with one
byte, and then the login fails with the same JSON.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from ottla.security.sasl.mechanism import Challenge, Identity, LoginFailed

_FIRST: Final = re.compile(
    r"n,(?:a=([^,]*))?,\x01auth=bearer[ ]+([-_~+/.a-z0-9]+=*)\x01(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*\x01",
    re.IGNORECASE,
)
_ACKNOWLEDGED: Final = b"\x01"


class InvalidToken(Exception):
    """A token that is not accepted. `status` and `scope` are for the client."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


_TIME_MS_MAX: Final = 1 << 53
"""Hundreds of thousands of years: no token means that."""


def time_ms_of(value: Any, claim: str) -> int:
    """Return when a claim says, in seconds. Raises `InvalidToken`: JSON has numbers that are no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value * 1000 <= _TIME_MS_MAX:
        raise InvalidToken(f"the claim {claim!r} is not a time")
    return int(value * 1000)


Validate = Callable[[str], Identity]
"""Return whose token it is. Raises `InvalidToken`."""


class OAuthBearerConversation:
    """One login by OAUTHBEARER."""

    def __init__(self, validate: Validate) -> None:
        self.user = ""
        self._validate = validate
        self._refusal: InvalidToken | None = None

    def receive(self, token: bytes) -> Challenge:
        """Check the token of the client, or take its acknowledgement that it was refused."""
        if self._refusal is not None:
            if token != _ACKNOWLEDGED:
                raise LoginFailed("the client does not acknowledge that its token was refused")
            raise LoginFailed(str(self._refusal), _as_json(self._refusal).decode())
        try:
            match = _FIRST.fullmatch(token.decode())
        except UnicodeDecodeError as error:
            raise LoginFailed("the token is not UTF-8") from error
        if match is None:
            raise LoginFailed("the client's message is invalid", "Invalid OAUTHBEARER client first message")
        authorization_id, bearer = match.groups()
        try:
            identity = self._validate(bearer)
        except InvalidToken as refusal:
            self._refusal = refusal
            return Challenge(_as_json(refusal))
        if authorization_id and authorization_id != identity.name:
            raise LoginFailed(
                f"{identity.name!r} may not act for another",
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                "different from the token's principal name",
            )
        return Challenge(b"", identity)


def _as_json(refusal: InvalidToken) -> bytes:
    answer = {"status": refusal.status}
    if refusal.scope:
        answer["scope"] = refusal.scope
    return json.dumps(answer, separators=(",", ":")).encode()
