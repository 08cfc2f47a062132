"""Where the tokens of OAUTHBEARER come from: a file, or the client credentials grant (RFC 6749, section 4.4).

Only the bytes: what to send to the provider, and what its answer says. Nothing of a secret or a token reaches
an error text.
"""

import base64
import binascii
import json
from typing import Final, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

FRESH_SHARE: Final = 0.8
"""After this share of its life a token is replaced, as by Kafka's clients."""
ANSWER_BYTES_MAX: Final = 1 << 20
SECONDS_MAX: Final = 10


class NoBearerToken(Exception):
    """There is no token to log in with. The message says why."""


class TokenSource(NamedTuple):
    """What is configured about tokens."""

    url: str
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""

    def __repr__(self) -> str:
        return f"TokenSource({self.url})"

    def find_fault(self) -> str | None:
        """Return what is missing or wrong; None if nothing is."""
        scheme = urlsplit(self.url).scheme
        if scheme not in ("file", "http", "https"):
            return f"{self.url!r} is not a file:, http: or https: URL"
        if scheme != "file" and not (self.client_id and self.client_secret):
            return "the id and the secret of the client are missing"
        return None

    @property
    def file(self) -> str | None:
        """The path of the file that has the token, if it is one."""
        parts = urlsplit(self.url)
        return parts.path if parts.scheme == "file" else None

    def headers(self) -> dict[str, str]:
        """Return the headers of the request to the provider."""
        credentials = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}".encode()
        return {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(credentials).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def body(self) -> bytes:
        """Return the body of the request."""
        fields = {"grant_type": "client_credentials"}
        if self.scope:
            fields["scope"] = self.scope
        return urlencode(fields).encode()

    def token_of(self, content: bytes) -> str:
        """Return the token that a file or an answer of the provider has. Raises `NoBearerToken`."""
        try:
            text = content.decode().strip()
            if self.file is None:
                answer = json.loads(text)
                text = answer["access_token"] if isinstance(answer, dict) else ""
        except (ValueError, KeyError) as error:
            raise NoBearerToken(f"{self.url} has no token") from error
        if not isinstance(text, str) or not text or not text.isascii() or not text.isprintable():
            raise NoBearerToken(f"{self.url} has no token")
        return text


def expiry_ms(token: str) -> int | None:
    """Return when a token expires, as far as it says so. Its signature is for the server to check."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return int(claims["exp"] * 1000)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError, binascii.Error):
        return None


def fresh_until_ms(token: str, now_ms: int) -> int | None:
    """Return until when a token that came now need not be replaced; None if it does not say."""
    expires = expiry_ms(token)
    return None if expires is None else now_ms + int((expires - now_ms) * FRESH_SHARE)
