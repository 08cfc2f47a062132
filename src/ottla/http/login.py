"""Who may use a satellite: names and passwords from a file, sent with HTTP's Basic scheme.

The file has a line for each user, `name: password`. A password may be followed by a comma and roles, as in
the files that Confluent's registry reads; roles are ignored.
"""

import asyncio
import base64
import binascii
import hmac
from pathlib import Path
from typing import Any, Final

from ottla.http.settings import UnusableSettings

# One who guesses passwords gets an answer only this often on each connection.
_PAUSE_S: Final = 0.2


class Users:
    """Names and passwords."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords

    @classmethod
    def read(cls, path: Path) -> "Users":
        """Read a file of users. Raises UnusableSettings."""
        passwords: dict[str, str] = {}
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableSettings(f"the file of users {path} cannot be read: {error}") from error
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, colon, rest = line.partition(":")
            password = rest.split(",")[0].strip()
            if not colon or not name.strip() or not password:
                raise UnusableSettings(f"line {number} of {path} is not `name: password`")
            passwords[name.strip()] = password
        if not passwords:
            raise UnusableSettings(f"the file of users {path} names nobody")
        return cls(passwords)

    def find(self, header: str) -> str | None:
        """Return the name of the user that a request proves to come from."""
        scheme, _, encoded = header.partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        expected = self._passwords.get(name)
        # Compare also for names that do not exist, so that the time tells nothing.
        is_right = hmac.compare_digest((expected or "\0").encode(), password.encode())
        return name if is_right and expected is not None else None


class LoginMiddleware:
    """Lets only users in. All others are answered 401."""

    def __init__(self, app: Any, users: Users, refusal: bytes, content_type: str) -> None:
        self._app = app
        self._users = users
        self._refusal = refusal
        self._content_type = content_type

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on if it is a user's."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        user = self._users.find(given.decode("latin-1"))
        if user is not None:
            scope["user"] = user
            await self._app(scope, receive, send)
            return
        await asyncio.sleep(_PAUSE_S)
        headers = [
            (b"content-type", self._content_type.encode()),
            (b"www-authenticate", b'Basic realm="ottla"'),
            (b"content-length", str(len(self._refusal)).encode()),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": self._refusal})
