"""Server-sent events: one stream for a page that moves, and none for all others.

An event is JSON, so an end of a line in it ends no event. A browser that does not read stops the reading of
the cluster: nothing is kept for it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from starlette.responses import StreamingResponse

from ottla.client.errors import ClientError
from ottla.console.serving.call import Call
from ottla.console.serving.failures import failure_of
from ottla.satellite.errors import HttpError

_STREAMS_MAX: Final = 200


class Event(NamedTuple):
    """One event. The browser sends the id of the last one when it comes back."""

    name: str
    data: Mapping[str, Any]
    id: str = ""


def encode_event(event: Event) -> bytes:
    """Return an event as it travels."""
    head = f"event: {event.name}\n" + (f"id: {event.id}\n" if event.id else "")
    return f"{head}data: {json.dumps(event.data)}\n\n".encode()


def stream(call: Call, events: AsyncIterator[Event]) -> StreamingResponse:
    """Return an answer that goes on until the browser leaves, the events end, or the console stops."""
    console = call.console
    if console.streams >= _STREAMS_MAX:
        raise HttpError(503, f"{_STREAMS_MAX} pages are followed already: close one, and try again")

    async def body() -> AsyncIterator[bytes]:
        console.streams += 1
        try:
            # Something at once, so that the browser knows that it is connected.
            yield b": here\n\n"
            async for event in events:
                if call.cluster.needs_login and not console.sessions.lasts(call.session_id):
                    # It has connections of its own, which the end of the session does not close.
                    yield encode_event(Event("failed", {"sentence": "the session is over: log in again"}))
                    return
                yield encode_event(event)
                if console.is_stopping:
                    return
        except ClientError as error:
            failure = failure_of(error, call.visit.user)
            yield encode_event(Event("failed", {"sentence": failure.sentence}))
        except asyncio.CancelledError:
            await events.aclose()  # type: ignore[attr-defined]
            raise
        finally:
            console.streams -= 1

    return StreamingResponse(body(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
