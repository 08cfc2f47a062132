"""Sends changes to the instance that writes."""

from typing import Final

import httpx

from ottla.registry.errors import forwarding_failed, no_leader
from ottla.registry.service import Registry
from ottla.satellite.app import Received, Reply
from ottla.satellite.instances import NoInstance, NotSent

FORWARDED: Final = "x-forward"
_KEPT: Final = ("content-type", "accept")
# Registering again what is registered changes nothing, and so does setting the same again.
_REPEATABLE: Final = ("POST", "PUT")


async def forward(registry: Registry, received: Received) -> Reply | None:
    """Return what the writer answers. None: this instance has become the writer.

    What was forwarded once is not forwarded again.
    """
    failed = None
    while True:
        leader = await registry.wait_for_leader(failed)
        if leader.url == registry.identity.url:
            return None
        if received.headers.get(FORWARDED, "").lower() == "true":
            raise no_leader()
        headers = {name: received.headers[name] for name in _KEPT if name in received.headers}
        try:
            answer = await registry.instances.send(
                leader.url,
                received.method,
                received.target,
                received.data,
                {**headers, FORWARDED: "true"},
                received.user,
            )
        except NoInstance as error:
            raise forwarding_failed(str(error)) from error
        except NotSent:
            # So it can be sent to the next writer.
            failed = leader
            continue
        except httpx.HTTPError as error:
            if received.method in _REPEATABLE:
                failed = leader
                continue
            raise forwarding_failed(f"Error while forwarding the request to the leader: {error!r}") from error
        return Reply(answer.status_code, answer.content, answer.headers.get("content-type", ""))
