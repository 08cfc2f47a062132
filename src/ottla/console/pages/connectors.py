"""Connectors: their tasks, errors and configs, and how to restart, pause and resume them."""

from typing import Final

from starlette.responses import Response

from ottla.client.admin.access_rules import Operation
from ottla.console.looks.satellites.connectors import ACTS, Connectors
from ottla.console.serving.app import command_text
from ottla.console.serving.call import Call
from ottla.console.serving.rights import check_right, may
from ottla.satellite.errors import HttpError

_MARKS: Final = {"RUNNING": "good", "FAILED": "bad", "PAUSED": "idle", "STOPPED": "idle"}


async def _worker(call: Call, right: Operation) -> Connectors:
    found: Connectors | None = call.console.satellites.connectors(call.cluster)
    if found is None:
        raise HttpError(404, "no worker of connectors is known: start the console with --connect URL")
    await check_right(call, right)
    return found


def _command(worker: Connectors, *words: str) -> str:
    return command_text(None, "connector", *words, "--url", worker.shown_url)


async def connectors(call: Call) -> Response:
    """Show the list of connectors."""
    if call.console.satellites.connectors(call.cluster) is None:
        return call.page("connectors.html", place="connectors", lines=None, marks=_MARKS, command=None)
    worker = await _worker(call, Operation.DESCRIBE)
    lines = await worker.list()
    command = _command(worker, "list")
    return call.page("connectors.html", place="connectors", lines=lines, marks=_MARKS, command=command)


async def connector(call: Call) -> Response:
    """Show one connector."""
    worker, name = await _worker(call, Operation.DESCRIBE), call.path["connector"]
    done = call.text("done")
    return call.page(
        "connector.html",
        place="connectors",
        look=await worker.look(name),
        marks=_MARKS,
        done=done if done in ACTS else None,
        may_change=await may(call, Operation.ALTER),
        command=_command(worker, "describe", name),
        acts={act: _command(worker, act, name) for act in ACTS},
    )


async def act_on_connector(call: Call) -> Response:
    """Restart, pause or resume a connector. Nothing is lost by any of these, so nothing is asked."""
    worker, act = await _worker(call, Operation.ALTER), call.field("act")
    if act not in ACTS:
        raise HttpError(400, f"{act[:20]!r} is none of {', '.join(ACTS)}")
    await worker.act(call.path["connector"], act)
    return call.see("connectors", call.path["connector"], query=f"?done={act}")
