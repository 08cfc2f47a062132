"""Metrics that clients push: who may push when, what is kept of it, and what bad input does."""

import struct
from collections.abc import Callable

import pytest
from tests.support.group_world import ManualClock

from ottla.broker.deferred import Deferred
from ottla.broker.telemetry.client_metrics import client_metrics
from ottla.broker.telemetry.otlp import (
    ATTRIBUTES_MAX,
    FIELDS_MAX,
    SAMPLES_MAX,
    MalformedMetrics,
    read_metrics,
)
from ottla.broker.telemetry.telemetry import (
    SERIES_OF_A_CLIENT_MAX,
    WAITING_MAX,
    ClientIdentity,
    Telemetry,
)
from ottla.metadata.image import EMPTY_IMAGE, ConfigResource, MetadataImage
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.attributes import Codec
from ottla.records.compression import compress
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.push_telemetry import PushTelemetryRequest

CLIENT = Uuid(b"a client's id...")
JAVA = ClientIdentity("orders", "apache-kafka-java", "4.3.1", "127.0.0.1", 50_000)
INTERVAL_MS = 1_000


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def metric(name: str, value: float, *, is_delta: bool = False, **attributes: str) -> bytes:
    point = b"".join(
        field(7, field(1, key.encode()) + field(2, field(1, text.encode())))
        for key, text in attributes.items()
    )
    point += bytes([4 << 3 | 1]) + struct.pack("<d", value)
    if is_delta:
        return field(1, name.encode()) + field(7, field(1, point) + b"\x10\x01")
    return field(1, name.encode()) + field(5, field(1, point))


def pushed(*metrics: bytes) -> bytes:
    return field(1, field(2, b"".join(field(2, one) for one in metrics)))


def image(**subscriptions: dict[str, str]) -> MetadataImage:
    configs = {
        ConfigResource(ResourceType.CLIENT_METRICS, name): overrides
        for name, overrides in subscriptions.items()
    }
    return EMPTY_IMAGE._replace(configs=configs)


ALL = image(all={"metrics": "*", "interval.ms": str(INTERVAL_MS)})


class World:
    """A node's telemetry, and a client."""

    def __init__(self, max_bytes: int = 100_000) -> None:
        self.clock = ManualClock(monotonic_ms=1_000_000)
        self.telemetry = Telemetry(self.clock, max_bytes, True, self.run)
        self.work: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []
        self.image = ALL

    def get(self, identity: ClientIdentity = JAVA) -> object:
        return self.telemetry.subscribe(CLIENT, identity, self.image)

    def push(self, metrics: bytes, codec: int = 0, **fields: object) -> ErrorCode:
        subscription = self.telemetry.instances.get(CLIENT)
        given = {
            "client_instance_id": CLIENT,
            "subscription_id": 0 if subscription is None else subscription.subscription_id,
            "terminating": False,
            "compression_type": codec,
            "metrics": metrics,
            **fields,
        }
        answer = self.begin_push(**given)
        while self.work:
            self.work_once()
        answers: list[ErrorCode] = []
        answer.when_done(answers.append)
        return answers[0]

    def begin_push(self, **given: object) -> Deferred[ErrorCode]:
        return self.telemetry.push(PushTelemetryRequest(**given), JAVA, self.image)  # type: ignore[arg-type]

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.work.append((work, done))

    def work_once(self) -> None:
        work, done = self.work.pop(0)
        try:
            work()
        except Exception as error:
            done(error)
        else:
            done(None)

    def series(self) -> dict[str, float]:
        return {name: value for (name, _), value in self.telemetry.instances[CLIENT].series.items()}


@pytest.mark.parametrize("codec", list(Codec))
def test_what_a_client_pushes_is_kept_whatever_compresses_it(codec: Codec) -> None:
    world = World()
    world.get()
    data = pushed(metric("rate", 2.5, topic="orders"), metric("sent", 3, is_delta=True))
    assert world.push(compress(codec, data) if codec else data, int(codec)) is ErrorCode.NONE
    world.clock.advance(INTERVAL_MS)
    assert world.push(pushed(metric("sent", 4, is_delta=True))) is ErrorCode.NONE
    assert world.series() == {"rate": 2.5, "sent": 7}
    shown = next(iter(client_metrics(world.telemetry)))
    assert {sample.labels["attributes"] for sample in shown.samples} == {"topic=orders", ""}


def test_a_client_that_comes_too_early_is_refused() -> None:
    world = World()
    assert world.get().requested_metrics == ("*",)  # type: ignore[attr-defined]
    assert world.get().error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED  # type: ignore[attr-defined]
    assert world.push(b"") is ErrorCode.NONE, "the first push comes when the client likes"
    assert world.push(b"") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert world.push(b"", terminating=True) is ErrorCode.NONE
    world.clock.advance(INTERVAL_MS)
    assert world.push(b"") is ErrorCode.INVALID_REQUEST, "it said that it ends"


def test_faults_of_a_push_are_named() -> None:
    world = World(max_bytes=100)
    assert world.push(b"", client_instance_id=ZERO_UUID) is ErrorCode.INVALID_REQUEST
    for fields, code in (
        ({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(101)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\x0a\xff"}, ErrorCode.INVALID_RECORD),
    ):
        world.clock.advance(INTERVAL_MS)
        world.get()
        world.clock.advance(INTERVAL_MS)
        assert world.push(**{"metrics": b"", **fields}) is code  # type: ignore[arg-type]


def fixed64(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 1]) + data


def test_distributions_become_numbers() -> None:
    counted = fixed64(4, struct.pack("<q", 6)) + fixed64(5, struct.pack("<d", 10.5))
    topic = field(1, b"topic") + field(2, field(1, b"orders"))
    buckets = field(6, struct.pack("<3q", 1, 2, 3)) + field(7, struct.pack("<2d", 0.5, 2))
    quantile = fixed64(1, struct.pack("<d", 0.99)) + fixed64(2, struct.pack("<d", 7))
    delta = b"\x10\x01"
    data = pushed(
        field(1, b"h") + field(9, field(1, counted + buckets + field(9, topic)) + delta),
        field(1, b"e") + field(10, field(1, counted + field(1, topic)) + delta),
        field(1, b"s") + field(11, field(1, counted + field(6, quantile))),
    )
    orders = ("topic", "orders")
    assert {(one.name, one.attributes): (one.value, one.is_delta) for one in read_metrics(data)} == {
        ("h.count", (orders,)): (6, True),
        ("h.sum", (orders,)): (10.5, True),
        ("h.bucket", (orders, ("le", "0.5"))): (1, True),
        ("h.bucket", (orders, ("le", "2"))): (3, True),
        ("e.count", (orders,)): (6, True),
        ("e.sum", (orders,)): (10.5, True),
        ("s.count", ()): (6, False),
        ("s.sum", ()): (10.5, False),
        ("s", (("quantile", "0.99"),)): (7, False),
    }
    with pytest.raises(MalformedMetrics):
        read_metrics(pushed(field(1, b"h") + field(9, field(1, field(6, b"odd")))))


def test_a_bomb_is_not_unpacked() -> None:
    world = World()
    world.get()
    assert world.push(compress(Codec.GZIP, bytes(50 << 20)), int(Codec.GZIP)) is ErrorCode.INVALID_RECORD


def test_subscriptions_are_for_those_who_match() -> None:
    world = World()
    world.image = image(
        java={"metrics": "a,b", "match": "client_software_name=apache.*,client_id=orders"},
        other={"metrics": "c", "match": "client_id=payments", "interval.ms": "500"},
    )
    answer = world.get()
    assert (answer.requested_metrics, answer.push_interval_ms) == (("a", "b"), 300_000)  # type: ignore[attr-defined]
    before = answer.subscription_id  # type: ignore[attr-defined]
    world.image = image(port={"metrics": "d", "match": "client_source_port=5.*"})
    assert world.get().requested_metrics == ("d",)  # type: ignore[attr-defined]
    assert world.get(JAVA._replace(source_port=40_000)).requested_metrics == ()  # type: ignore[attr-defined]
    # Another subscription counts at once.
    world.image = ALL
    answer = world.get()
    assert answer.requested_metrics == ("*",)  # type: ignore[attr-defined]
    assert answer.subscription_id != before  # type: ignore[attr-defined]


def test_a_client_cannot_have_any_number_of_series() -> None:
    world = World(max_bytes=10_000_000)
    world.get()
    metrics = [metric(f"m{number}", 1) for number in range(SERIES_OF_A_CLIENT_MAX + 50)]
    assert world.push(pushed(*metrics, metric("x" * 1000, 1))) is ErrorCode.NONE
    assert len(world.series()) == SERIES_OF_A_CLIENT_MAX
    assert world.telemetry.instances[CLIENT].left_out == 51
    assert len(read_metrics(pushed(*[metric("m", 1)] * (SAMPLES_MAX + 10)))) == SAMPLES_MAX


def test_a_client_that_is_gone_is_forgotten() -> None:
    world = World()
    world.get()
    world.clock.advance(61_000)
    world.telemetry.subscribe(Uuid(b"another client's"), JAVA, ALL)
    assert CLIENT not in world.telemetry.instances


@pytest.mark.parametrize(
    "data", [b"\x0a", b"\x0a\x05ab", b"\xff" * 11, b"\x0b", field(1, field(2, b"\x0a\x7f"))]
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMetrics):
        read_metrics(data)


def test_many_small_fields_are_not_read_to_the_end() -> None:
    """A few kilobytes, compressed, are millions of them."""
    tiny = field(1, b"") * (FIELDS_MAX + 1)
    for data in (tiny, field(1, tiny), pushed(tiny), pushed(field(5, tiny))):
        with pytest.raises(MalformedMetrics, match="fields"):
            read_metrics(data)


def test_a_long_name_is_not_copied_for_each_number() -> None:
    point = bytes([4 << 3 | 1]) + struct.pack("<q", 1) + bytes([5 << 3 | 1]) + struct.pack("<d", 1)
    samples = read_metrics(pushed(field(1, b"x" * 1_000_000) + field(9, field(1, point) * 500)))
    assert len(samples) == 1_000
    assert sum(len(sample.name) for sample in samples) < 2_000_000


def test_attributes_are_few() -> None:
    named = {f"a{number}": "x" for number in range(ATTRIBUTES_MAX + 1)}
    with pytest.raises(MalformedMetrics, match="attributes"):
        read_metrics(pushed(metric("sent", 1, **named)))  # type: ignore[arg-type]


def test_what_was_pushed_is_read_by_a_worker_one_after_the_other() -> None:
    world = World()
    data = pushed(metric("sent", 1))
    answers: list[ErrorCode] = []
    for number in range(WAITING_MAX + 2):
        client = Uuid(number.to_bytes(8) + b"a client")
        world.telemetry.subscribe(client, JAVA, world.image)
        world.begin_push(
            client_instance_id=client,
            subscription_id=world.telemetry.instances[client].subscription_id,
            terminating=False,
            compression_type=0,
            metrics=data,
        ).when_done(answers.append)
    assert (len(world.work), answers) == (1, [ErrorCode.THROTTLING_QUOTA_EXCEEDED])
    while world.work:
        world.work_once()
        assert len(world.work) <= 1
    assert answers[1:] == [ErrorCode.NONE] * (WAITING_MAX + 1)
