"""Lets only users in. All others are answered 401, and those who guess too often 429."""

import asyncio
from typing import Any, Final

from ottla.satellite.guesses import Guesses
from ottla.satellite.refusals import Refusals
from ottla.satellite.users import Users, read_credentials

# A wrong password is answered late.
_PAUSE_S: Final = 0.2


class LoginDoor:
    """Passes requests of users on, and those that another instance has signed."""

    def __init__(self, app: Any, users: Users, refusals: Refusals) -> None:
        self._app = app
        self._users = users
        self._refusals = refusals
        self._guesses = Guesses()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on if it is a user's."""
        if scope["type"] != "http" or "forwarded" in scope:
            await self._app(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        given = read_credentials(header.decode("latin-1"))
        if given is None:
            await self._refusals.unauthorized(scope, send)
            return
        address = scope["client"][0] if scope.get("client") else ""
        wait_s = self._guesses.wait_s(address, given.name, asyncio.get_running_loop().time())
        if wait_s > 0:
            await self._refusals.slow_down(send, wait_s)
            return
        if not self._users.knows(given):
            # Before the pause: others must not guess meanwhile.
            self._guesses.failed(address, given.name, asyncio.get_running_loop().time())
            await asyncio.sleep(_PAUSE_S)
            await self._refusals.unauthorized(scope, send)
            return
        self._guesses.succeeded(address, given.name)
        await self._app({**scope, "user": given.name}, receive, send)
