"""PLAIN (RFC 4616): user and password in one token. Safe only where the connection is encrypted."""

import hmac
from collections.abc import Mapping

from ottla.security.sasl.mechanism import Challenge, Identity, LoginFailed


class PlainConversation:
    """One login by PLAIN."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users` has the passwords."""
        self._users = users
        self.user = ""

    def receive(self, token: bytes) -> Challenge:
        """Check the password. Unknown users and wrong passwords look the same, and take the same time."""
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError as error:
            raise LoginFailed("the token is not UTF-8") from error
        if len(parts) != 3:
            message = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise LoginFailed("the token does not have three parts", message)
        authorization_id, user, password = parts
        self.user = user
        if not user:
            raise LoginFailed("no user", "Authentication failed: username not specified")
        if not password:
            raise LoginFailed("no password", "Authentication failed: password not specified")
        expected = self._users.get(user)
        is_right = hmac.compare_digest(
            password.encode(), (password + "." if expected is None else expected).encode()
        )
        if not is_right:
            raise LoginFailed(
                f"wrong user or password for {user!r}",
                "Authentication failed: Invalid username or password",
            )
        if authorization_id not in ("", user):
            raise LoginFailed(
                f"{user!r} may not act for another",
                "Authentication failed: Client requested an authorization id that is different from username",
            )
        return Challenge(b"", Identity(user))
