"""How a visitor logs in: with the name and the password that a client of the cluster would use.

The console asks the cluster, and has no list of its own. Guessing is slowed down as by all satellites.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from ottla.client.errors import AuthenticationFailed, ClientError
from ottla.console.serving.call import cluster_url
from ottla.console.serving.rendering import render
from ottla.console.serving.sessions import Login
from ottla.console.settings import ClusterSettings

if TYPE_CHECKING:
    from ottla.console.serving.app import Console

_PAUSE_S: Final = 0.2
_LENGTH_MAX: Final = 1_000


@dataclass(frozen=True)
class LoggedIn:
    """A login that went well: the new number of the visitor, and where to go on."""

    session_id: str
    target: str


@dataclass(frozen=True)
class Refused:
    """A login that has yet to go well."""

    target: str = ""
    user: str = ""
    mechanism: str = ""
    reason: str | None = None
    status: int = 200


def login_url(cluster: str, target: str) -> str:
    """Return where a visitor logs in before a page is shown."""
    return f"/login/{quote(cluster, safe='')}?next={quote(target, safe='')}"


async def log_in(
    console: "Console",
    cluster: ClusterSettings,
    session_id: str,
    form: Mapping[str, Sequence[str]],
    address: str,
) -> LoggedIn | Refused:
    """Ask the cluster whether a visitor is who he says. Raises ClientError if it cannot be asked."""
    user, password, mechanism, target = (
        (form.get(name) or [""])[0][:_LENGTH_MAX] for name in ("user", "password", "mechanism", "next")
    )
    if mechanism not in cluster.mechanisms:
        mechanism = cluster.mechanisms[0]
    if not user:
        return Refused(target, user, mechanism, "a name is needed", 400)
    wait_s = console.guesses.wait_s(address, user, console.now_s())
    if wait_s > 0:
        reason = f"too many wrong passwords: try again in {math.ceil(wait_s)} s"
        return Refused(target, user, mechanism, reason, 429)
    given = Login(mechanism, user, password)
    # It counts as wrong until the cluster has answered: many at once must not get past the check above.
    taken = console.guesses.failed(address, user, console.now_s())
    try:
        visit = await console.visits.opened(cluster, given)
    except AuthenticationFailed as error:
        await asyncio.sleep(_PAUSE_S)
        return Refused(target, user, mechanism, str(error), 403)
    except ClientError:
        console.guesses.give_back(taken, console.now_s())
        raise
    console.guesses.give_back(taken, console.now_s())
    console.guesses.succeeded(address, user)
    new_id, ended = console.sessions.log_in(session_id, cluster.name, given)
    for over in ended:
        await console.visits.end(over)
    console.visits.keep(cluster, new_id, visit)
    return LoggedIn(new_id, target if is_own_path(target) else cluster_url(cluster.name))


def is_own_path(target: str) -> bool:
    """Say whether a target is a page of this console, and no other site."""
    return target.startswith("/c/") and "\\" not in target and target.isprintable()


def form_page(console: "Console", cluster: ClusterSettings, session_id: str, refused: Refused) -> Response:
    """Return the page to log in."""
    values = console.shared_values(session_id, cluster, None)
    page = render("login.html", {**values, "refused": refused, "mechanisms": cluster.mechanisms})
    return HTMLResponse(page, refused.status)
