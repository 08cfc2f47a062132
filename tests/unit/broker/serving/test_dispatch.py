"""Bytes in, bytes out: what a session answers, parks and refuses."""

from fnmatch import fnmatch
from time import perf_counter_ns
from typing import Any, cast

import pytest

from ottla.broker.deferred import Deferred
from ottla.broker.journal.journal import Journal
from ottla.broker.limits.quotas import Quotas
from ottla.broker.node import Broker, BrokerContext
from ottla.broker.quorum.features import Features
from ottla.broker.serving.dispatch import PENDING, Session
from ottla.broker.serving.handlers import declared_of, find_handler
from ottla.broker.serving.replies import NO_REPLY
from ottla.broker.serving.routes import PLAIN_FRAME_BYTES_MAX, Route, Routes
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.metadata.configs.node import NodeConfig
from ottla.runtime.clock import SystemClock
from ottla.security.authorizer import AllowsEverything
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes
from ottla.wire.framing import UnsupportedRequest, decode_response, encode_request
from ottla.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FEATURES = Features(
    supported=(
        SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30),
        SupportedFeatureKey(name="group.version", min_version=0, max_version=1),
    ),
    finalized=(FinalizedFeatureKey(name="metadata.version", max_version_level=30, min_version_level=30),),
    finalized_epoch=42,
)
API_VERSIONS = api_of(ApiKey.API_VERSIONS)


class FakeBroker:
    """As much of a broker as ApiVersions needs."""

    quotas = Quotas()
    journal = Journal(SystemClock())
    authorizer = AllowsEverything()
    config = NodeConfig({"process.roles": "broker", "node.id": "1", "controller.listener.names": "QUORUM"})

    def features(self) -> Features:
        return FEATURES


class FakeClient:
    """A connection that keeps what the session does with it."""

    listener_name = "PLAINTEXT"
    local = ("127.0.0.1", 9092)
    peer_host = "127.0.0.1"
    peer_port = 50_000

    def has_hung_up(self) -> bool:
        return False

    def mute(self, milliseconds: int) -> None:
        raise AssertionError(f"nobody is over a quota, yet is muted for {milliseconds} ms")


class Fixture:
    """A session whose late answers and failures are kept."""

    def __init__(self, routes: Routes | None = None) -> None:
        self.late: list[list[Any]] = []
        self.failures: list[Exception] = []
        context = BrokerContext(cast(Broker, FakeBroker()), FakeClient())
        self.session = Session(
            context, routes or Routes(perf_counter_ns), self.late.append, self.failures.append
        )

    def ask(self, request: Any, key: ApiKey, version: int, client_id: str | None = "test") -> Any:
        frame = encode_request(request, api_of(key), version, 5, client_id)
        pieces = self.session.receive(memoryview(frame)[4:])
        assert pieces is not PENDING
        frame = b"".join(pieces)
        assert int.from_bytes(frame[:4]) == len(frame) - 4
        correlation_id, response = decode_response(api_of(key), version, frame[4:])
        assert correlation_id == 5
        return response


def api_versions(version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer: ApiVersionsResponse = Fixture().ask(request, ApiKey.API_VERSIONS, version)
    return answer


@pytest.mark.parametrize("version", API_VERSIONS.versions.all)
def test_api_versions_lists_exactly_what_is_served(version: int) -> None:
    listed = {entry.api_key for entry in api_versions(version).api_keys}
    served = {key for key, api in SERVED.items() if Listener.BROKER in api.listeners}
    assert listed == served - {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def test_old_clients_are_not_shown_features_whose_lowest_level_is_0() -> None:
    assert [feature.name for feature in api_versions(3).supported_features] == ["metadata.version"]
    assert len(api_versions(4).supported_features) == 2
    assert api_versions(4).finalized_features_epoch == 42


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", "1\n")])
def test_a_strange_software_name_is_refused(name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert Fixture().ask(request, ApiKey.API_VERSIONS, 4).error_code is ErrorCode.INVALID_REQUEST


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    frame = bytearray(encode_request(ApiVersionsRequest(), API_VERSIONS, 0, 9, None))
    frame[6:8] = (99).to_bytes(2)

    pieces = Fixture().session.receive(memoryview(frame)[4:])

    assert pieces is not PENDING
    correlation_id, answer = decode_response(API_VERSIONS, 0, b"".join(pieces)[4:])
    assert (correlation_id, answer.error_code) == (9, ErrorCode.UNSUPPORTED_VERSION)
    assert [(entry.api_key, entry.min_version, entry.max_version) for entry in answer.api_keys] == [
        (18, 0, 4)
    ]


@pytest.mark.parametrize(("key", "version"), [(4, 0), (93, 0), (-1, 0), (3, 99), (3, -1), (0, 2)])
def test_what_is_not_served_is_refused(key: int, version: int) -> None:
    frame = key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + bytes(4) + b"\xff\xff"
    with pytest.raises(UnsupportedRequest):
        Fixture().session.receive(memoryview(frame))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x12\0",
        b"\0\x12\0\0\0\0\0\1\0\5abc",  # a client id that is cut short
        b"\0\x12\0\0\0\0\0\1\0\1\xff",  # a client id that is not UTF-8
        b"\0\x12\0\3\0\0\0\1\xff\xff",  # no tagged fields of the header
        b"\0\x12\0\3\0\0\0\1\xff\xff\xff\xff\xff\xff\x0f",  # two hundred million tagged fields
        b"\0\x12\0\3\0\0\0\1\xff\xff\0\x20",  # a string that is cut short
    ],
)
def test_bytes_that_are_no_request_raise_a_typed_error(frame: bytes) -> None:
    with pytest.raises(MalformedBytes):
        Fixture().session.receive(memoryview(frame))


def routes_to(handler: Any) -> Routes:
    routes = Routes(perf_counter_ns)
    routes.by_key[ApiKey.API_VERSIONS << 16] = Route(
        API_VERSIONS, 0, declared_of(ApiKey.API_VERSIONS), handler, perf_counter_ns, []
    )
    return routes


FRAME = encode_request(ApiVersionsRequest(), API_VERSIONS, 0, 77, None)[4:]


def test_a_deferred_answer_comes_with_its_own_correlation_id() -> None:
    promise: Deferred[ApiVersionsResponse] = Deferred()
    fixture = Fixture(routes_to(lambda _ask, _context: promise))

    assert fixture.session.receive(memoryview(FRAME)) is PENDING
    assert fixture.late == []
    promise.resolve(ApiVersionsResponse(api_keys=()))

    assert [decode_response(API_VERSIONS, 0, b"".join(pieces)[4:])[0] for pieces in fixture.late] == [77]


def test_a_deferred_that_fails_closes_the_connection() -> None:
    promise: Deferred[ApiVersionsResponse] = Deferred()
    fixture = Fixture(routes_to(lambda _ask, _context: promise))
    fixture.session.receive(memoryview(FRAME))

    promise.fail(ValueError("no"))

    assert [str(error) for error in fixture.failures] == ["no"]


def test_no_reply_is_an_empty_answer() -> None:
    assert Fixture(routes_to(lambda _ask, _context: NO_REPLY)).session.receive(memoryview(FRAME)) == []


@pytest.mark.parametrize("key", sorted(SERVED))
def test_a_file_of_an_api_registers_the_handler_of_that_api(key: ApiKey) -> None:
    listener = Listener.BROKER if Listener.BROKER in SERVED[key].listeners else Listener.CONTROLLER
    handler: Any = find_handler(key, listener)
    assert fnmatch(handler.__module__, f"ottla.broker.apis.*.{key.name.lower()}")
    assert handler.__name__ == key.name.lower()


@pytest.mark.parametrize("key", [key for key in SERVED if Listener.CONTROLLER in SERVED[key].listeners])
def test_what_a_controller_serves_has_a_handler_in_the_file_of_its_api(key: ApiKey) -> None:
    handler: Any = find_handler(key, Listener.CONTROLLER)
    assert fnmatch(handler.__module__, f"ottla.broker.apis.*.{key.name.lower()}")


def test_only_requests_that_carry_records_may_be_large() -> None:
    small = encode_request(ApiVersionsRequest(), API_VERSIONS, 3, 5, "test")[4:]
    with pytest.raises(MalformedBytes, match="API_VERSIONS has"):
        Fixture().session.receive(memoryview(small + bytes(PLAIN_FRAME_BYTES_MAX)))
    routes = Routes(perf_counter_ns)
    produce, fetch = (routes.find(key, 12) for key in (ApiKey.PRODUCE, ApiKey.FETCH))
    assert produce is not None
    assert fetch is not None
    assert produce.frame_bytes_max > 100 << 20
    assert fetch.frame_bytes_max == PLAIN_FRAME_BYTES_MAX
