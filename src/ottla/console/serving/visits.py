"""All visits that are open: one for each cluster and session, opened at the first look.

A visit that nobody uses is closed, and there is a bound on their number.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ottla.console.looks.decoding import Decoding
from ottla.console.looks.visit import Visit
from ottla.console.serving.sessions import Login
from ottla.console.settings import ClusterSettings, ConsoleSettings

_VISITS_MAX: Final = 64
_Key = tuple[str, str]


class Visits:
    """Opens and closes visits."""

    def __init__(self, settings: ConsoleSettings, make: Callable[..., Visit] = Visit) -> None:
        self._make = make
        self._open: OrderedDict[_Key, Visit] = OrderedDict()
        self._opening: dict[_Key, asyncio.Lock] = {}
        self._decoding = {one.name: Decoding(one.registry_url) for one in settings.clusters}

    async def get(self, cluster: ClusterSettings, session_id: str, login: Login | None) -> Visit:
        """Return the visit of a session, opening it if need be. Without a login all share one."""
        key = cluster.name, "" if login is None else session_id
        async with self._opening.setdefault(key, asyncio.Lock()):
            visit = self._open.get(key)
            if visit is None:
                visit = await self.opened(cluster, login)
                self._open[key] = visit
            self._open.move_to_end(key)
        while len(self._open) > _VISITS_MAX:
            oldest, least = self._open.popitem(last=False)
            self._opening.pop(oldest, None)
            await least.close()
        return visit

    async def opened(self, cluster: ClusterSettings, login: Login | None) -> Visit:
        """Open a visit that belongs to the caller."""
        properties = (
            cluster.properties
            if login is None
            else cluster.for_visitor(login.mechanism, login.user, login.password)
        )
        user = None if login is None else login.user
        visit = self._make(cluster, properties, user, self._decoding[cluster.name])
        await visit.start()
        return visit

    def keep(self, cluster: ClusterSettings, session_id: str, visit: Visit) -> None:
        """Take a visit over that was opened for a login."""
        self._open[cluster.name, session_id] = visit

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    async def end(self, session_id: str) -> None:
        """Close the visits of a session."""
        for key in [key for key in self._open if key[1] == session_id]:
            self._opening.pop(key, None)
            await self._open.pop(key).close()

    async def close(self) -> None:
        """Close all visits."""
        while self._open:
            await self._open.popitem()[1].close()
        for decoding in self._decoding.values():
            decoding.close()
