"""Client telemetry (KIP-714): the same questions and pushes get the same answers as from Apache Kafka."""

import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import count
from typing import Any

import pytest
from tests.differential.side_by_side import Both, Side

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.attributes import Codec
from ottla.records.compression import compress
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest

INTERVAL_MS = "3600000"
"""Nothing is due a second time: a slow machine changes no answer."""
TOO_LARGE = bytes((1 << 20) + 1)
METRICS = bytes.fromhex("0a0e120c120a0a01782a05120331323300")
RESERVED = Uuid(bytes(15) + b"\x01")


class Names:
    """Names that no other test has."""

    def __init__(self, test: str) -> None:
        self._test = test
        self._numbers = count()

    def new_id(self) -> Uuid:
        return Uuid(blake2b(self.new().encode(), digest_size=16).digest())

    def new(self) -> str:
        return f"{self._test}.{next(self._numbers)}"


class Client:
    """A client as both know it: its id, and which subscription each of them has told it."""

    def __init__(self, both: Both, instance_id: Uuid) -> None:
        self.both = both
        self.instance_id = instance_id
        self.subscription_ids = [0, 0]

    def get(self) -> Any:
        """Ask both which metrics they want."""
        answers = [_get(side, self.instance_id) for side in self.both.sides]
        if answers[0].error_code is ErrorCode.NONE:
            self.subscription_ids = [answer.subscription_id for answer in answers]
        of_kafka, of_ottla = map(_told, answers)
        assert of_ottla == of_kafka
        return of_ottla

    def push(
        self, metrics: bytes = b"", codec: int = 0, terminating: bool = False, other: int = 0
    ) -> ErrorCode:
        """Push to both. `other` makes it the number of a subscription that nobody has."""

        def request(side: Side) -> PushTelemetryRequest:
            return PushTelemetryRequest(
                client_instance_id=self.instance_id,
                subscription_id=self.subscription_ids[self.both.sides.index(side)] ^ other,
                terminating=terminating,
                compression_type=codec,
                metrics=metrics,
            )

        error: ErrorCode
        error, _ = self.both.ask(request, 0, lambda answer: (answer.error_code, answer.throttle_time_ms))
        return error


def _get(side: Side, instance_id: Uuid) -> GetTelemetrySubscriptionsResponse:
    answer: GetTelemetrySubscriptionsResponse = side.client.ask(
        GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    )
    return answer


def _told(answer: GetTelemetrySubscriptionsResponse) -> Any:
    """Return what both must tell alike. The number of a subscription is for each to choose."""
    return (
        answer.error_code,
        answer.throttle_time_ms,
        answer.client_instance_id,
        answer.accepted_compression_types,
        answer.push_interval_ms,
        answer.telemetry_max_bytes,
        answer.delta_temporality,
        # Kafka's come from a set.
        sorted(answer.requested_metrics),
    )


def _subscribe(both: Both, names: Names, **configs: str) -> str:
    """Change the subscription "some", and wait until both brokers know it.

    They do once they want the metric that is returned.
    """
    marker = f"marker.{names.new()}"
    resources = tuple(
        AlterConfigsResource(
            resource_type=ResourceType.CLIENT_METRICS,
            resource_name=name,
            configs=tuple(
                AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()
            ),
        )
        for name, values in (
            ("some", {"metrics": "", "match": "", **configs}),
            ("marker", {"metrics": marker, "interval.ms": INTERVAL_MS}),
        )
    )
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    both.ask(request, 1, lambda answer: [one.error_code for one in answer.responses])
    deadline_s = time.monotonic() + 120
    for side in both.sides:
        while marker not in _get(side, names.new_id()).requested_metrics:
            assert time.monotonic() < deadline_s, "the subscription is known in time"
            time.sleep(0.05)
    return marker


@pytest.fixture
def names(request: pytest.FixtureRequest) -> Names:
    return Names(blake2b(request.node.nodeid.encode(), digest_size=4).hexdigest())


@pytest.fixture
def subscribed(both: Both, names: Names) -> Both:
    """Both of them, with a subscription for all clients."""
    _subscribe(both, names, metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.")
    return both


LIVES: dict[str, list[Callable[[Client], Any]]] = {
    "in order": [Client.get, Client.push, Client.push],
    "too often": [Client.get, Client.get, Client.get],
    "never asked": [Client.push, Client.get, Client.push],
    "asked after the push": [Client.get, Client.push, Client.get],
    "another subscription": [
        Client.get, lambda one: one.push(other=1), Client.get, Client.push, lambda one: one.push(other=1),
    ],
    "unknown codec": [Client.get, lambda one: one.push(codec=9), Client.get, Client.push],
    "negative codec": [Client.get, lambda one: one.push(codec=-1), Client.push],
    "too large": [Client.get, lambda one: one.push(TOO_LARGE), Client.get, Client.push],
    "just not too large": [Client.get, lambda one: one.push(TOO_LARGE[1:])],
    "no metrics at all": [Client.get, lambda one: one.push(b"garbage")],
    "terminating": [
        Client.get, Client.push, lambda one: one.push(terminating=True),
        lambda one: one.push(terminating=True), Client.push, Client.get,
    ],
    "terminating at once": [Client.get, lambda one: one.push(terminating=True), Client.get, Client.push],
    "terminating wrongly": [
        Client.get, lambda one: one.push(terminating=True, other=1), lambda one: one.push(terminating=True),
    ],
    "terminating and too large": [Client.get, lambda one: one.push(TOO_LARGE, terminating=True), Client.push],
    **{
        f"compressed by {codec.name}": [
            Client.get, partial(Client.push, metrics=compress(codec, METRICS), codec=int(codec)),
        ]
        for codec in Codec if codec
    },
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES)
def test_a_client_gets_the_same_answers(subscribed: Both, names: Names, life: str) -> None:
    client = Client(subscribed, names.new_id())
    for step in LIVES[life]:
        step(client)


@pytest.mark.parametrize("instance_id", [ZERO_UUID, RESERVED], ids=["none", "reserved"])
def test_an_id_that_nobody_has_is_refused_alike(subscribed: Both, instance_id: Uuid) -> None:
    assert Client(subscribed, instance_id).push() is ErrorCode.INVALID_REQUEST


def test_a_subscription_without_metrics_wants_none(both: Both, names: Names) -> None:
    marker = _subscribe(both, names)
    assert Client(both, names.new_id()).get()[-1] == [marker]


def test_a_client_without_an_id_gets_one(subscribed: Both) -> None:
    answers = [_get(side, ZERO_UUID) for side in subscribed.sides]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 2
    assert all(answer.client_instance_id not in (ZERO_UUID, RESERVED) for answer in answers)


@pytest.mark.parametrize(
    ("match", "is_matched"),
    [
        ("client_id=plain.*", True),
        ("client_id=plain", False),
        ("client_id=plain-client,client_id=other", False),
        ("client_instance_id=.*", True),
        ("client_source_address=127\\.0\\.0\\.1", True),
        ("client_source_address=10\\..*", False),
        ("client_source_port=[0-9]+", True),
        ("client_source_port=1", False),
        ("client_source_port=.*,client_id=plain-client", True),
        ("client_software_name=.*", True),
        ("client_software_version=4.*", False),
    ],
)
def test_the_same_clients_are_selected(subscribed: Both, names: Names, match: str, is_matched: bool) -> None:
    metric = f"selected.{names.new()}"
    _subscribe(subscribed, names, metrics=metric, match=match)
    told = Client(subscribed, names.new_id()).get()
    assert (metric in told[-1]) is is_matched
