"""Kafka Connect's API, as the application asks it."""

from typing import Final

from ottla.client.errors import ClientError
from ottla.connect.errors import RestError
from ottla.connect.serving.call import Answer, Call
from ottla.connect.serving.routes import ROUTES
from ottla.connect.worker import Worker
from ottla.satellite.app import Api, Received, Reply, Route, encode_json
from ottla.satellite.errors import HttpError

JSON: Final = "application/json"
_KEPT: Final = ("content-type", "accept")
_ANYTHING: Final = ("*/*", "application/*", JSON)


class ConnectApi(Api):
    """The API of one worker."""

    routes = ROUTES
    body_types = (JSON,)

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def answer_type(self, accept: str | None) -> str:
        """Return the content type of an answer."""
        if accept and not any(part.split(";")[0].strip().lower() in _ANYTHING for part in accept.split(",")):
            raise RestError(406, "HTTP 406 Not Acceptable")
        return JSON

    def shown(self, message: str) -> str:
        """Return a text without secrets."""
        return self._worker.secrets.mask(message)

    def error_of(self, error: Exception) -> HttpError | None:
        """Return the answer if the cluster is at fault."""
        if isinstance(error, ClientError):
            return HttpError(500, f"The cluster did not answer as expected: {error}")
        return None

    async def answer(self, route: Route, received: Received, content_type: str) -> Reply:
        """Answer, or have the leader answer."""
        worker = self._worker
        # Of others it says nothing. What workers ask of each other is never forwarded for a client: it would
        # come with the proof of a worker.
        knows_scope = "scope" in route.parameters
        is_cluster_wide = knows_scope and received.query.get("scope", [""])[0].lower() == "cluster"
        if (route.is_led or is_cluster_wide) and not worker.is_leader:
            return await _forward(worker, received)
        call = Call(
            worker, received.path, received.query, received.headers, received.data, received.is_forwarded
        )
        answer: Answer = await route.handler(call)
        body = encode_json(answer.body) if answer.has_body else None
        return Reply(answer.status, body, content_type, answer.headers)


async def _forward(worker: Worker, received: Received) -> Reply:
    """Send a request to the leader. What was forwarded twice is not forwarded again."""
    leader, hops = worker.leader_url, received.query.get("forward", [None])[0]
    if leader is None:
        raise RestError(
            409,
            "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was "
            "underway.",
        )
    if hops == "false" or leader.rstrip("/") == worker.url:
        raise RestError(
            409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )
    path, _, query = received.target.partition("?")
    kept = [part for part in query.split("&") if part and not part.startswith("forward=")]
    kept.append("forward=true" if hops is None else "forward=false")
    headers = {name: received.headers[name] for name in _KEPT if name in received.headers}
    target = f"{path}?{'&'.join(kept)}"
    answer = await worker.internal.send(
        received.method, leader, target, received.data, headers, received.user
    )
    passed = {name: answer.headers[name] for name in ("location",) if name in answer.headers}
    return Reply(answer.status_code, answer.content, answer.headers.get("content-type", ""), passed)
