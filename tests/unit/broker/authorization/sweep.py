"""What becomes of a filled request of every API, in every version and on every listener.

    python -m tests.unit.broker.authorization.sweep > tests/unit/broker/authorization/sweep.tsv

A row has an API and some of its versions, the listener, who asks, and the errors of the answer. Who asks is
somebody who has not logged in, a user without any right, or a user with one of the rights that the API asks
for, on the resource that the request names. Nothing comes of requests that reach the controller, or a handler
of the controller's listener: they are answered INVALID_REQUEST.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from tests.support.data_plane import create_topic
from tests.support.filled_requests import request_about
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.authorization.authorizers import guarded
from ottla.broker.authorization.refusals import refused
from ottla.broker.deferred import Deferred
from ottla.broker.lifecycle.startup import Node
from ottla.broker.login.login_session import LoginSession
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.dispatch import PENDING, Session
from ottla.broker.serving.handlers import CheckedBy, declared_of, find_handler
from ottla.broker.serving.in_turns import finish
from ottla.broker.serving.replies import settle
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.model.uuid import Uuid
from ottla.runtime.connections.listener import ConnectionEnded
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.rights import CLUSTER, ResourceType, Right
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.compiling.error_finder import compile_error_finder
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import WireError
from ottla.wire.framing import decode_response, encode_request
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest

TABLE: Final = Path(__file__).with_name("sweep.tsv")
TOPIC: Final = "payments"
STRANGER: Final = "before login"
NOBODY: Final = "no rights"
CLOSED: Final = "closed"
_LISTENER: Final = "LOGIN"
_CLIENT: Final = "sweep"
_SETTINGS: Final = {
    "listeners": f"PLAINTEXT://127.0.0.1:0,{_LISTENER}://127.0.0.1:0",
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{_LISTENER}:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "authorizer.class.name": CLASS_NAME,
    "super.users": str(ANONYMOUS),
    "auto.create.topics.enable": "false",
    "ottla.journal.enable": "false",
}


class Row(NamedTuple):
    """What became of one request, or of the same in several versions."""

    api: str
    versions: str
    listener: str
    who: str
    outcome: str


def sweep(versions_of: Callable[[ApiKey], Sequence[int]]) -> Iterator[Row]:
    """Ask all there is to ask, in some versions of each API. Rows have one version each."""
    with tempfile.TemporaryDirectory() as root, in_process_node(Path(root), _SETTINGS) as node:
        boss = InProcessClient(node)
        topic_id = create_topic(boss, TOPIC)
        rights = sorted({right for key in SERVED for right in declared_of(key).rights})
        boss.ask(CreateAclsRequest(creations=tuple(map(_rule, rights))))
        with patch.object(RequestContext, "ask_controller", _refuse):
            for key in sorted(SERVED):
                for version in versions_of(key):
                    for listener, who, outcome in _outcomes(node, key, version, topic_id):
                        yield Row(key.name, str(version), listener.name, who, outcome)


def _outcomes(node: Node, key: ApiKey, version: int, topic_id: Uuid) -> Iterator[tuple[Listener, str, str]]:
    ask = request_about(key, version, TOPIC, topic_id)
    for listener in sorted(SERVED[key].listeners, key=lambda one: one.name):
        serve = _on_broker if listener is Listener.BROKER else _on_controller
        if listener is Listener.BROKER:
            yield listener, STRANGER, _before_login(node, key, version, ask)
        for right in (None, *declared_of(key).rights):
            yield listener, NOBODY if right is None else _named(right), serve(node, key, version, ask, right)


def _before_login(node: Node, key: ApiKey, version: int, ask: Any) -> str:
    client = InProcessClient(node)
    logins = node.broker.logins
    assert logins is not None, "a listener asks for a login"
    stranger: Any = _Stranger(client)
    login = LoginSession(logins, stranger, client.session, logins._mechanisms[_LISTENER])
    frame = encode_request(ask, api_of(key), version, 1, _CLIENT)
    try:
        pieces = login.receive(memoryview(bytearray(frame))[4:])
    except (ConnectionEnded, WireError):
        return CLOSED
    finally:
        login.close()
    if pieces is PENDING or pieces is None:
        return "answered late"
    assert all(isinstance(piece, bytes) for piece in pieces), "nothing of a log is sent before the login"
    answer = decode_response(
        api_of(key), version, b"".join(piece for piece in pieces if isinstance(piece, bytes))[4:]
    )[1]
    return _errors(answer, key, version)


class _Stranger:
    """A connection of somebody who has not logged in."""

    listener_name = _LISTENER

    def __init__(self, client: InProcessClient) -> None:
        self.peer_host = client.peer_host

    def limit_frames(self, _bytes_max: int | None) -> None:
        """Do nothing: there are no frames."""

    def answer_later(self, _pieces: Any) -> None:
        """Do nothing: nobody waits."""

    def close(self, _reason: Exception | None = None) -> None:
        """Do nothing: there is no connection."""

    def mute(self, _milliseconds: int) -> None:
        """Do nothing."""


def _on_broker(node: Node, key: ApiKey, version: int, ask: Any, right: Right | None) -> str:
    client = InProcessClient(node)
    client.session.context.principal = _user(right)
    return _ask(client, key, version, ask)


def _on_controller(node: Node, key: ApiKey, version: int, ask: Any, right: Right | None) -> str:
    client = InProcessClient(node)
    controller = node.parts.controller
    context = RequestContext(controller, client, Listener.CONTROLLER)
    context.principal = _user(right)
    context.version = version
    if declared_of(key).checked_by is CheckedBy.HANDLER:
        client.session = Session(context, controller.routes, client._late.append, client._failures.append)
        return _ask(client, key, version, ask)
    handler = find_handler(key, Listener.CONTROLLER)
    assert handler is not None, "it is served there"
    answer = guarded(key, lambda asked, _context: _refuse(context, asked).value())(ask, context)
    return _errors(finish(settle(answer)), key, version)


def _ask(client: InProcessClient, key: ApiKey, version: int, ask: Any) -> str:
    try:
        return _errors(client.ask(ask, version, _CLIENT), key, version)
    except (ConnectionEnded, WireError):
        return CLOSED
    finally:
        client.session.close()


def _errors(answer: Any, key: ApiKey, version: int) -> str:
    found: list[ErrorCode] = []
    compile_error_finder(api_of(key).response, version)(answer, found.append)
    return " ".join(sorted({error.name for error in found})) or "no error"


def _refuse(_context: RequestContext, ask: Any) -> Deferred[Any]:
    return Deferred.of(refused(ask, ErrorCode.INVALID_REQUEST))


def _named(right: Right) -> str:
    return f"{right.operation.name} {right.resource_type.name}"


def _user(right: Right | None) -> Principal:
    return Principal("User", "nobody" if right is None else _named(right).replace(" ", "-").lower())


def _rule(right: Right) -> AclCreation:
    return AclCreation(
        resource_type=right.resource_type,
        resource_name=CLUSTER if right.resource_type is ResourceType.CLUSTER else TOPIC,
        principal=str(_user(right)),
        host="*",
        operation=right.operation,
        permission_type=3,
    )


def all_versions(key: ApiKey) -> range:
    """Return the versions that are served."""
    return range(SERVED[key].versions.first, SERVED[key].versions.last + 1)


def merged(rows: Sequence[Row]) -> Iterator[Row]:
    """Join the rows of versions that follow each other and have the same outcome."""
    ordered = sorted(rows, key=lambda row: (ApiKey[row.api], row.listener, _rank(row.who), row.who))
    for _, same in groupby(ordered, key=lambda row: (row.api, row.listener, row.who, row.outcome)):
        group = list(same)
        first, last = group[0].versions, group[-1].versions
        yield group[0]._replace(versions=first if first == last else f"{first}-{last}")


def _rank(who: str) -> int:
    return (STRANGER, NOBODY, who).index(who)


def read_table() -> list[Row]:
    """Return the rows of the file."""
    return [Row(*line.split("\t")) for line in TABLE.read_text().splitlines()]


def main() -> None:
    """Write the table."""
    for row in merged(list(sweep(all_versions))):
        sys.stdout.write("\t".join(row) + "\n")


if __name__ == "__main__":
    main()
