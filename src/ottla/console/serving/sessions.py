"""Sessions of visitors who have logged in, and the tokens that forms carry.

A session is a random number in a cookie that no script can read and no other site can send. It ends when it
is not used, after a time in any case, and at the logout. The names and passwords in it are in memory alone:
they are needed for each new connection to the cluster.

Each visitor has such a number, also where nobody logs in: the token of a form is made of it with a secret of
this process, so a page of somebody else, which does not know the token, cannot send a form.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_SESSIONS_MAX: Final = 1_000
_ID_BYTES: Final = 32
_ID_CHARACTERS: Final = 43


class Login(NamedTuple):
    """As whom a visitor is logged in at a cluster."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"


@dataclass
class Session:
    """One visitor."""

    created_s: float
    used_s: float
    logins: dict[str, Login] = field(default_factory=dict)
    """By cluster."""


class Sessions:
    """All sessions."""

    def __init__(self, idle_s: float, session_s: float, now_s: Callable[[], float]) -> None:
        self._idle_s = idle_s
        self._session_s = session_s
        self._now_s = now_s
        self._secret = secrets.token_bytes(_ID_BYTES)
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    @staticmethod
    def new_id() -> str:
        """Return a number that nobody can guess."""
        return secrets.token_urlsafe(_ID_BYTES)

    @staticmethod
    def looks_like_id(text: str) -> bool:
        """Say whether a cookie may be one of ours."""
        return len(text) == _ID_CHARACTERS

    def token(self, session_id: str) -> str:
        """Return what forms of a visitor carry."""
        return hmac.new(self._secret, session_id.encode(), "sha256").hexdigest()

    def is_token(self, session_id: str, given: str) -> bool:
        """Say whether a form came from a page of this visitor."""
        return hmac.compare_digest(self.token(session_id).encode(), given.encode())

    def find(self, session_id: str) -> Session | None:
        """Return a session that has not ended, and note that it is used."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        now_s = self._now_s()
        if self._is_over(session, now_s):
            return None
        session.used_s = now_s
        self._sessions.move_to_end(session_id)
        return session

    def lasts(self, session_id: str) -> bool:
        """Say whether a session has not ended. That does not count as using it."""
        session = self._sessions.get(session_id)
        return session is not None and not self._is_over(session, self._now_s())

    def log_in(self, session_id: str, cluster: str, login: Login) -> tuple[str, list[str]]:
        """Begin a session with a new id, so that an id somebody else chose is worth nothing.

        Returns the id, and the ids of sessions that ended for it.
        """
        before = self.find(session_id)
        now_s = self._now_s()
        session = Session(now_s, now_s) if before is None else before
        ended = [session_id] if self._sessions.pop(session_id, None) is not None else []
        session.logins[cluster] = login
        new_id = self.new_id()
        self._sessions[new_id] = session
        while len(self._sessions) > _SESSIONS_MAX:
            ended.append(self._sessions.popitem(last=False)[0])
        return new_id, ended

    def log_out(self, session_id: str) -> None:
        """End a session."""
        self._sessions.pop(session_id, None)

    def sweep(self) -> list[str]:
        """Forget sessions that are over. Returns their ids."""
        now_s = self._now_s()
        over = [name for name, session in self._sessions.items() if self._is_over(session, now_s)]
        for name in over:
            del self._sessions[name]
        return over

    def _is_over(self, session: Session, now_s: float) -> bool:
        return now_s - session.used_s > self._idle_s or now_s - session.created_s > self._session_s
