"""One request of a visitor, as pages see it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, RedirectResponse, Response

from ottla.console.looks.visit import Visit
from ottla.console.serving.rendering import encode_json, render
from ottla.console.settings import ClusterSettings
from ottla.satellite.errors import HttpError

if TYPE_CHECKING:
    from ottla.console.serving.app import Console

_INT_DIGITS_MAX: Final = 19
_SEE_OTHER: Final = 303
_ONCE: Final = ("fresh", "figures")
"""Read again, and wait for the figures."""


@dataclass(frozen=True)
class Call:
    """A request that has passed all doors."""

    console: "Console"
    method: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]]
    session_id: str
    cluster: ClusterSettings
    visit: Visit
    address: str
    is_part: bool
    """Whether only a part of the page is wanted, to be put into one that is there."""

    @property
    def lasting(self) -> dict[str, str]:
        """The query without what holds for one request alone."""
        return {name: value for name, value in self.query.items() if name not in _ONCE}

    def text(self, name: str) -> str:
        """Return a parameter of the query, "" if it is not there."""
        return self.query.get(name, "").strip()

    def flag(self, name: str) -> bool:
        """Return whether a parameter is set."""
        return self.query.get(name, "") in ("1", "true", "on", "yes")

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a parameter that is a number. Raises HttpError."""
        given = self.text(name)
        if not given:
            return default
        if not given.removeprefix("-").isdecimal() or len(given) > _INT_DIGITS_MAX:
            raise HttpError(400, f"{name}={given[:40]} is not a number")
        return int(given)

    def field(self, name: str) -> str:
        """Return a field of the form, "" if it is not there."""
        return (self.form.get(name) or [""])[0]

    def url(self, *parts: str) -> str:
        """Return the path of a page of this cluster."""
        return cluster_url(self.cluster.name, *parts)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(self.rendered(template, **values), status)

    def rendered(self, template: str, **values: Any) -> str:
        """Return the text of a page."""
        shared = self.console.shared_values(self.session_id, self.cluster, self.visit.user)
        return render(template, {**shared, "url": self.url, **values})

    def see(self, *parts: str, query: str = "") -> Response:
        """Return an answer that leads to another page."""
        return RedirectResponse(self.url(*parts) + query, _SEE_OTHER)


Page = Callable[[Call], Any]


def cluster_url(cluster: str, *parts: str) -> str:
    """Return the path of a page."""
    return "/c/" + "/".join(quote(part, safe="") for part in (cluster, *parts))


def json_answer(value: Any, status: int = 200) -> Response:
    """Return rows as JSON."""
    return Response(encode_json(value), status, media_type="application/json")
