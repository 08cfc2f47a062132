"""What a SASL mechanism is to a login: a conversation that ends with a principal or a failure."""

from typing import NamedTuple, Protocol


class LoginFailed(Exception):
    """A login that failed. The client gets the message, or a general one; the log gets the reason."""

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.message = message


class Identity(NamedTuple):
    """The principal that has logged in."""

    name: str
    expires_ms: int | None = None
    """When the credential expires, if it does."""
    is_by_token: bool = False
    """Whether it was a delegation token that was shown."""
    principal_type: str = "User"


class Challenge(NamedTuple):
    """What the server sends back; with an identity if the login is complete."""

    token: bytes
    identity: Identity | None = None


class SaslConversation(Protocol):
    """One login by one mechanism."""

    user: str
    """Whose password is tried, once that is known; empty for what is no password."""

    def receive(self, token: bytes) -> Challenge:
        """Take the client's next token. Raises `LoginFailed`."""
