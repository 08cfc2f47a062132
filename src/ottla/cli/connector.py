"""`ottla connector`: the connectors of a worker of Ottla or of Kafka Connect, by its REST API."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import click

from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, show_done, show_one, show_rows

DEFAULT_URL: Final = "http://127.0.0.1:8083"
_TIMEOUT_S: Final = 60
_connect_options = (
    click.option(
        "--url",
        metavar="URL",
        envvar="OTTLA_CONNECT",
        default=DEFAULT_URL,
        show_default=True,
        help="The REST API of a worker.",
    ),
    click.option("--user", metavar="NAME:PASSWORD", envvar="OTTLA_CONNECT_USER", help="How to log in to it."),
    click.option("--ca", metavar="FILE", type=click.Path(exists=True), help="With https: whom to trust."),
)


def _worker_options(command: Any) -> Any:
    """Add the options that say which worker to ask. The command gets them as `worker`."""

    def with_worker(url: str, user: str | None, ca: str | None, **others: Any) -> Any:
        return command(worker=_Worker(url, user, ca), **others)

    with_worker.__doc__, with_worker.__name__ = command.__doc__, command.__name__
    found: Any = with_worker
    for option in reversed((*_connect_options, json_option)):
        found = option(found)
    return found


@click.group()
def connector() -> None:
    """Connectors: list, describe, create, pause, resume, restart, delete."""


@connector.command("list")
@_worker_options
def list_connectors(worker: "_Worker", as_json: bool) -> None:
    """List connectors, their states, and how many of their tasks run."""
    found = worker.ask("GET", "/connectors?expand=status&expand=info")
    rows = [_row(name, facts) for name, facts in sorted(found.items())]
    show_rows(rows, as_json, "there are no connectors")


def _row(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    # One that was made a moment ago may have no state yet.
    status = facts.get("status") or {"connector": {}, "tasks": ()}
    states = [task["state"] for task in status["tasks"]]
    return {
        "connector": name,
        "state": status["connector"].get("state"),
        "tasks": len(states),
        "running": states.count("RUNNING"),
        "class": (facts.get("info") or {}).get("config", {}).get("connector.class"),
        "worker": status["connector"].get("worker_id"),
    }


@connector.command()
@click.argument("name")
@_worker_options
def describe(worker: "_Worker", as_json: bool, name: str) -> None:
    """Describe the connector NAME: its state, its tasks and their errors, its configuration."""
    path = f"/connectors/{quote(name, safe='')}"
    status, config = worker.ask("GET", f"{path}/status"), worker.ask("GET", f"{path}/config")
    if as_json:
        show_one({**status, "config": config}, as_json)
        return
    facts: dict[str, Any] = {
        "state": status["connector"]["state"],
        "worker": status["connector"]["worker_id"],
    }
    for task in status["tasks"]:
        trace = str(task.get("trace") or "").strip().splitlines()
        facts[f"task {task['id']}"] = task["state"] + (f": {trace[0]}" if trace else "")
    show_one({**facts, **dict(sorted(config.items()))}, as_json)


@connector.command()
@click.argument("name")
@click.option(
    "--file",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON with its configuration, or with name and config.",
)
@click.option(
    "-c", "--config", "assignments", metavar="KEY=VALUE", multiple=True, help="A config. Can be repeated."
)
@_worker_options
def create(
    worker: "_Worker", as_json: bool, name: str, source: Path | None, assignments: tuple[str, ...]
) -> None:
    """Create the connector NAME, or change its configuration."""
    from ottla.cli.profiles import parse_assignments

    config = {**({} if source is None else _read(source)), **parse_assignments(assignments, "--config")}
    if not config:
        raise click.UsageError("say how: --file, or --config KEY=VALUE")
    worker.ask("PUT", f"/connectors/{quote(name, safe='')}/config", config)
    show_done(f"connector {name} has this configuration now", as_json, connector=name, config=config)


def _read(source: Path) -> dict[str, str]:
    try:
        found = json.loads(source.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Failure(f"cannot read {source}: {error}") from error
    config = found.get("config", found) if isinstance(found, dict) else None
    if not isinstance(config, dict):
        raise Failure(f'{source} must have an object of configs, such as {{"connector.class": "..."}}')
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def _act(path: str, done: str, method: str = "PUT") -> Any:
    def act(worker: "_Worker", as_json: bool, name: str) -> None:
        worker.ask(method, f"/connectors/{quote(name, safe='')}{path}")
        show_done(f"{done} connector {name}", as_json, connector=name)

    return act


for _name, _path, _done, _method, _help in (
    ("pause", "/pause", "paused", "PUT", "Pause the connector NAME: its tasks stay, and do nothing."),
    ("resume", "/resume", "resumed", "PUT", "Let the connector NAME go on, after a pause or a stop."),
    ("stop", "/stop", "stopped", "PUT", "Stop the connector NAME: its tasks end, its offsets stay."),
    (
        "restart",
        "/restart?includeTasks=true",
        "restarted",
        "POST",
        "Restart the connector NAME with its tasks.",
    ),
):
    connector.command(_name, help=_help)(click.argument("name")(_worker_options(_act(_path, _done, _method))))


@connector.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_worker_options
def delete(worker: "_Worker", as_json: bool, name: str, yes: bool) -> None:
    """Delete the connector NAME. What it has written stays."""
    confirm(f"delete connector {name}?", yes)
    worker.ask("DELETE", f"/connectors/{quote(name, safe='')}")
    show_done(f"deleted connector {name}", as_json, connector=name)


class _Worker:
    """The REST API of a worker."""

    def __init__(self, url: str, user: str | None, ca: str | None) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise click.BadParameter(f"{url!r} must begin with http:// or https://", param_hint="--url")
        self._url = url.rstrip("/")
        self._ca = ca
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if user:
            self._headers["Authorization"] = "Basic " + b64encode(user.encode()).decode()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the answer."""
        from http.client import HTTPException
        from ssl import create_default_context
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        data = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, data, self._headers, method=method)  # noqa: S310
        context = create_default_context(cafile=self._ca) if self._url.startswith("https") else None
        try:
            with urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:  # noqa: S310
                text = answer.read()
        except HTTPError as error:
            with error:
                refusal = _refusal(error.code, error.read())
            raise Failure(refusal) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise Failure(
                f"no worker answers at {self._url} ({reason}); start one with `ottla connect`, or name "
                "another with --url"
            ) from error
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise Failure(f"{self._url} is not a worker of connectors: its answer is not JSON") from error


def _refusal(code: int, text: bytes) -> str:
    try:
        message = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        message = text[:200].decode(errors="replace") or "no reason was given"
    if code == 401:
        message = "it asks for a login: add --user NAME:PASSWORD"
    return f"the worker refused it: {message} ({code})"
