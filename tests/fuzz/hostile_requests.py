"""Has a whole node serve spoilt requests of all APIs and versions: only typed errors may come of it.

    python -m tests.fuzz.hostile_requests --requests 200000 --seed 7

The node runs in this process. Requests come from a user without rights and from one who may do everything, on
the listener of the broker and on that of the controller. A failure shows the request, which is all that is
needed to see it again.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.hostile_frames import REQUEST_HEADER_BYTES, Unsafe, seed_frames
from tests.fuzz.mutations import mutate
from tests.support.data_plane import create_topic
from tests.support.filled_requests import request_about
from tests.support.in_process import InProcessClient, in_process_node, loop_of

from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.dispatch import PENDING, Session
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.model.uuid import Uuid
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.errors import WireError
from ottla.wire.framing import encode_request

TOPIC = "payments"
MALLORY = Principal("User", "mallory")
WHO = ((Listener.BROKER, MALLORY), (Listener.CONTROLLER, MALLORY), (Listener.BROKER, ANONYMOUS),
       (Listener.CONTROLLER, ANONYMOUS))  # fmt: skip
SPOILT_SHARE = 0.9
TURNS_MAX = 30
"""For how many turns of the loop an answer is waited for: some come when others have asked, or later."""
_SETTINGS = {
    "authorizer.class.name": CLASS_NAME,
    "super.users": str(ANONYMOUS),
    "auto.create.topics.enable": "false",
    "delegation.token.secret.key": "a key of tests",
    "ottla.telemetry.enable": "true",
    "ottla.journal.enable": "false",
}


@dataclass
class Report:
    """What came of a run."""

    requests: int = 0
    answered: int = 0
    closed: int = 0
    by_api: dict[ApiKey, int] = field(default_factory=dict)


def run(requests: int, seed: int, *, is_wide: bool = True) -> Report:
    """Send this many requests, most of them spoilt, evenly over all listeners, users, APIs and versions.

    `is_wide` also takes those that real clients have sent, and ones with every field set.
    """
    report = Report()
    random = Random(seed)
    with tempfile.TemporaryDirectory() as root, in_process_node(Path(root), _SETTINGS) as node:
        topic_id = create_topic(InProcessClient(node), TOPIC)
        right = {listener: _requests_on(listener, topic_id, is_wide=is_wide) for listener in Listener}
        others = [payload for found in right.values() for _, payloads in found for payload in payloads]
        for number in range(requests):
            listener, principal = WHO[number % len(WHO)]
            key, payloads = random.choice(right[listener])
            payload = random.choice(payloads)
            if random.random() < SPOILT_SHARE:
                payload = mutate(payload, random, others, REQUEST_HEADER_BYTES)
            report.requests += 1
            report.by_api[key] = report.by_api.get(key, 0) + 1
            try:
                report.answered += _serve(node, listener, principal, payload)
            except (ConnectionEnded, WireError):
                report.closed += 1
            except Exception as error:
                what = f"seed {seed}, request {number}, {key.name} of {principal} on {listener.name}"
                raise Unsafe(f"{what}: {error!r}\n{payload.hex()}") from error
    return report


def _requests_on(listener: Listener, topic_id: Uuid, *, is_wide: bool) -> list[tuple[ApiKey, list[bytes]]]:
    """Return requests that are right, for each API and version of a listener."""
    seeds = seed_frames() if is_wide else {}
    found = []
    for key, served in SERVED.items():
        if listener not in served.listeners:
            continue
        for version in range(served.versions.first, served.versions.last + 1):
            filled = request_about(key, version, TOPIC, topic_id)
            frame = encode_request(filled, api_of(key), version, 1, "fuzz")
            recorded = [seed.payload for seed in seeds.get((key, version, True), ())]
            found.append((key, [frame[4:], *recorded]))
    return found


def _serve(node: Node, listener: Listener, principal: Principal, payload: bytes) -> bool:
    """Say whether a request is answered soon."""
    client = InProcessClient(node)
    if listener is Listener.CONTROLLER:
        controller = node.parts.controller
        context = RequestContext(controller, client, listener)
        client.session = Session(context, controller.routes, client._late.append, client._failures.append)
    client.session.context.principal = principal
    client.session.context.login = "PLAIN"
    try:
        pieces: Any = client.session.receive(memoryview(bytearray(payload)))
        for _ in range(TURNS_MAX):
            if pieces is not PENDING:
                return True
            loop_of(node).run_until_complete(asyncio.sleep(0))
            if client._failures:
                raise client._failures.pop()
            if client._late:
                pieces = client._late.pop()
        return False
    finally:
        client.session.close()


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    report = run(options.requests, options.seed)
    print(
        f"{report.requests} requests of {len(report.by_api)} APIs: {report.answered} were answered, "
        f"{report.closed} ended the connection, the others wait"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
