"""Connectors of a worker of Ottla or of Kafka Connect, by its REST API.

Secrets are hidden here, before anything else sees them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx

from ottla.client.errors import ClientError
from ottla.client.registry.client import without_login
from ottla.model.secrets_hidden import data_without_secrets, without_secrets

_TIMEOUT_S: Final = 10.0
_RUNNING: Final = "RUNNING"
ACTS: Final[Mapping[str, tuple[str, str]]] = {
    "restart": ("POST", "/restart?includeTasks=true"),
    "pause": ("PUT", "/pause"),
    "resume": ("PUT", "/resume"),
}
"""What can be done with a connector: a method and a path of the REST API."""


class WorkerRefused(ClientError):
    """The worker answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the worker refused it: {message} ({status})")
        self.status = status


class WorkerUnreachable(ClientError):
    """No worker answered."""

    retriable = True


class Task(NamedTuple):
    """One task. With a `trace` it has failed."""

    number: int
    state: str
    worker: str
    trace: str

    @property
    def reason(self) -> str:
        """The first line of the trace."""
        return self.trace.partition("\n")[0]


class ConnectorLine(NamedTuple):
    """A connector in the list."""

    name: str
    state: str
    kind: str
    class_name: str
    tasks: Sequence[Task]

    @property
    def running(self) -> int:
        """How many tasks run."""
        return sum(task.state == _RUNNING for task in self.tasks)

    @property
    def reason(self) -> str:
        """Why the first task that has failed did."""
        return next((task.reason for task in self.tasks if task.trace), "")


@dataclass(frozen=True)
class ConnectorLook:
    """One connector."""

    line: ConnectorLine
    worker: str
    trace: str
    """Why the connector itself has failed."""
    config: Mapping[str, str]


class Connectors:
    """The REST API of a worker."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        self.shown_url = without_login(self._url)
        self._client = httpx.AsyncClient(timeout=_TIMEOUT_S, transport=transport)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def list(self) -> Sequence[ConnectorLine]:
        """Return all connectors. Raises ClientError."""
        found = await self._ask("GET", "/connectors?expand=status&expand=info")
        return [
            _line(name, facts.get("status") or {}, (facts.get("info") or {}).get("config") or {})
            for name, facts in sorted(found.items())
        ]

    async def look(self, name: str) -> ConnectorLook:
        """Return one connector. Raises ClientError."""
        path = f"/connectors/{quote(name, safe='')}"
        status, config = await self._ask("GET", f"{path}/status"), await self._ask("GET", f"{path}/config")
        own = status.get("connector") or {}
        return ConnectorLook(
            _line(name, status, config),
            str(own.get("worker_id") or ""),
            without_secrets(str(own.get("trace") or "")).strip(),
            dict(sorted(data_without_secrets(config).items())),
        )

    async def act(self, name: str, act: str) -> None:
        """Do one of ACTS. Raises ClientError."""
        method, path = ACTS[act]
        await self._ask(method, f"/connectors/{quote(name, safe='')}{path}")

    async def _ask(self, method: str, path: str) -> Any:
        try:
            answer = await self._client.request(method, self._url + path)
            content = answer.json() if answer.content else None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = without_secrets(str(error)) or type(error).__name__
            raise WorkerUnreachable(
                f"no worker answers at {self.shown_url} ({reason}): start one with `ottla connect`, or "
                "start the console with another --connect"
            ) from error
        except ValueError as error:
            raise WorkerUnreachable(
                f"{self.shown_url} is not a worker of connectors: its answer is not JSON"
            ) from error
        if not answer.is_success:
            message = content.get("message") if isinstance(content, dict) else None
            raise WorkerRefused(answer.status_code, without_secrets(str(message or "no reason was given")))
        return content


def _line(name: str, status: Mapping[str, Any], config: Mapping[str, Any]) -> ConnectorLine:
    tasks = [
        Task(
            int(task["id"]),
            str(task["state"]),
            str(task.get("worker_id") or ""),
            without_secrets(str(task.get("trace") or "")).strip(),
        )
        for task in status.get("tasks") or ()
    ]
    # One that was made a moment ago may have no state yet.
    state = str((status.get("connector") or {}).get("state") or "UNASSIGNED")
    kind, class_name = str(status.get("type") or ""), str(config.get("connector.class") or "")
    return ConnectorLine(name, state, kind, class_name, tasks)
