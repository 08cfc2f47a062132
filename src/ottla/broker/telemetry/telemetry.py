"""Which metrics clients should push, and what they have pushed.

Subscriptions are config resources of the type CLIENT_METRICS. A client asks for the subscriptions that match
it, then pushes at most once in an interval. Errors are those of Kafka's ClientMetricsManager.

What is kept is bounded, because clients name their metrics: so many clients, so many series of each. A client
that has sent nothing for three intervals is forgotten.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from ottla.broker.deferred import Deferred
from ottla.broker.telemetry.otlp import MalformedMetrics, Sample, read_metrics
from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.errors import ChangeRefused, InvalidConfig
from ottla.metadata.configs.subscriptions import parse_selectors
from ottla.metadata.image import MetadataImage
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.attributes import Codec
from ottla.records.compression import DecompressionLimits, decompress
from ottla.records.errors import RecordsError
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from ottla.wire.messages.push_telemetry import PushTelemetryRequest
from ottla.world.clock import Clock
from ottla.world.workers import Run

CLIENTS_MAX: Final = 1_000
WAITING_MAX: Final = 32
"""How many pushes may wait for the worker that reads them."""
SERIES_OF_A_CLIENT_MAX: Final = 200
LABEL_LENGTH_MAX: Final = 200

ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
_logger: Final = logging.getLogger("ottla.telemetry")
_DEFAULT_INTERVAL_MS: Final = 300_000
_ALL_METRICS: Final = "*"
_EXPIRY_MS_MIN: Final = 60_000
_LONG_AGO_MS: Final = -(1 << 62)
_DECOMPRESSED_BYTES_MIN: Final = 1 << 20
_DECOMPRESSED_RATIO: Final = 8
_RESERVED_IDS: Final = (ZERO_UUID, Uuid(bytes(15) + b"\x01"))
_MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientIdentity(NamedTuple):
    """Who a client is, by the names of the selectors."""

    client_id: str | None
    software_name: str
    software_version: str
    source_address: str
    source_port: int

    def selected_by(self, instance_id: Uuid, selectors: Mapping[str, Any]) -> bool:
        """Say whether all selectors match."""
        values = {
            "client_instance_id": str(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.source_address,
            "client_source_port": str(self.source_port),
        }
        return all(
            (value := values.get(name)) is not None and pattern.fullmatch(value)
            for name, pattern in selectors.items()
        )


class Subscription(NamedTuple):
    """Which clients push which metrics how often."""

    metrics: frozenset[str]
    interval_ms: int
    selectors: Mapping[str, Any]


Series = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its attributes."""


@dataclass(slots=True)
class Instance:
    """A client, as far as telemetry is concerned."""

    instance_id: Uuid
    identity: ClientIdentity
    subscriptions: tuple[Subscription, ...]
    """All that there are, for which this was computed."""
    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int
    last_get_ms: int = _LONG_AGO_MS
    last_push_ms: int = _LONG_AGO_MS
    seen_ms: int = 0
    last_error: ErrorCode = ErrorCode.NONE
    is_terminating: bool = False
    series: dict[Series, float] = field(default_factory=dict)
    left_out: int = 0

    def take(self, samples: list[Sample]) -> None:
        """Keep the numbers of a push. What was added since the last one is added up."""
        for sample in samples:
            key = (sample.name, sample.attributes)
            if key not in self.series and (len(self.series) >= SERIES_OF_A_CLIENT_MAX or _is_long(key)):
                self.left_out += 1
                continue
            before = self.series.get(key, 0.0) if sample.is_delta else 0.0
            self.series[key] = before + sample.value


class Telemetry:
    """The clients of a node that push, or may."""

    def __init__(self, clock: Clock, max_bytes: int, keeps_metrics: bool, run: Run) -> None:
        """`run` lets a worker read what was pushed, because that takes long."""
        self._clock = clock
        self._run = run
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_reading = False
        self._max_bytes = max_bytes
        self._keeps_metrics = keeps_metrics
        self._image: MetadataImage | None = None
        self._subscriptions: tuple[Subscription, ...] = ()
        self.instances: dict[Uuid, Instance] = {}
        self.pushes = 0
        self.refused_pushes = 0

    def subscribe(
        self, instance_id: Uuid, identity: ClientIdentity, image: MetadataImage
    ) -> GetTelemetrySubscriptionsResponse:
        """Tell a client which metrics to push. A client that asks too often is refused."""
        instance = self._instance(instance_id, identity, image)
        now_ms = self._clock.monotonic_ms()
        is_due = now_ms - max(instance.last_get_ms, instance.last_push_ms) >= instance.interval_ms
        if is_due:
            instance.last_get_ms = now_ms
        elif instance.last_error not in _MAY_ASK_AGAIN:
            return _refused_subscription(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=tuple(int(codec) for codec in ACCEPTED_CODECS),
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self._max_bytes,
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )

    def push(
        self, ask: PushTelemetryRequest, identity: ClientIdentity, image: MetadataImage
    ) -> Deferred[ErrorCode]:
        """Take the metrics of a client."""
        answer = Deferred[ErrorCode]()
        if ask.client_instance_id in _RESERVED_IDS:
            answer.resolve(ErrorCode.INVALID_REQUEST)
            return answer
        self.pushes += 1
        instance = self._instance(ask.client_instance_id, identity, image)
        error = self._find_fault(ask, instance)
        instance.is_terminating = ask.terminating

        def end(error: ErrorCode) -> None:
            instance.last_error = error
            self.refused_pushes += error is not ErrorCode.NONE
            answer.resolve(error)

        if error is not ErrorCode.NONE or not ask.metrics or not self._keeps_metrics:
            end(error)
        elif len(self._waiting) >= WAITING_MAX:
            end(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        else:
            self._waiting.append(partial(self._take, ask, instance, end))
            self._take_next()
        return answer

    def _find_fault(self, ask: PushTelemetryRequest, instance: Instance) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        now_ms = self._clock.monotonic_ms()
        # The first push after a question comes when the client likes, so that not all push at once.
        is_due = (
            instance.last_get_ms > instance.last_push_ms
            or now_ms - instance.last_push_ms >= instance.interval_ms
        )
        if is_due:
            instance.last_push_ms = now_ms
        elif not ask.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if ask.subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if ask.compression_type not in _CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(ask.metrics) > self._max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _take_next(self) -> None:
        """Let a worker read the next push, one after the other: others need the workers as well."""
        if self._waiting and not self._is_reading:
            self._is_reading = True
            self._waiting.popleft()()

    def _take(self, ask: PushTelemetryRequest, instance: Instance, end: Callable[[ErrorCode], None]) -> None:
        # A small push could become gigabytes: what is unpacked is bounded.
        limits = DecompressionLimits(max(_DECOMPRESSED_BYTES_MIN, _DECOMPRESSED_RATIO * self._max_bytes))
        samples: list[Sample] = []

        def read() -> None:
            samples.extend(read_metrics(decompress(Codec(ask.compression_type), ask.metrics, limits)))

        def taken(error: Exception | None) -> None:
            self._is_reading = False
            if error is None:
                instance.take(samples)
            elif not isinstance(error, MalformedMetrics | RecordsError):
                _logger.error("cannot read what a client has pushed", exc_info=error)
            end(ErrorCode.NONE if error is None else ErrorCode.INVALID_RECORD)
            self._take_next()

        self._run(read, taken)

    # Clients

    def _instance(self, instance_id: Uuid, identity: ClientIdentity, image: MetadataImage) -> Instance:
        if image is not self._image:
            self._image = image
            found = _read_subscriptions(image)
            # The same object as long as nothing has changed.
            self._subscriptions = self._subscriptions if found == self._subscriptions else found
        known = self.instances.pop(instance_id, None)
        if known is None or known.subscriptions is not self._subscriptions:
            fresh = _new_instance(instance_id, identity, self._subscriptions)
            if known is not None:
                fresh.series, fresh.left_out = known.series, known.left_out
            known = fresh
        # The last one that sent something is the last one in the dictionary.
        self.instances[instance_id] = known
        known.seen_ms = self._clock.monotonic_ms()
        self._forget_old()
        return known

    def _forget_old(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for instance_id in list(self.instances):
            instance = self.instances[instance_id]
            is_old = now_ms - instance.seen_ms > max(_EXPIRY_MS_MIN, 3 * instance.interval_ms)
            if not is_old and len(self.instances) <= CLIENTS_MAX:
                return
            del self.instances[instance_id]


_CODECS: Final = frozenset(int(codec) for codec in Codec)


def _read_subscriptions(image: MetadataImage) -> tuple[Subscription, ...]:
    found = []
    for resource in sorted(image.configs):
        if resource.type != ResourceType.CLIENT_METRICS:
            continue
        overrides = image.configs[resource]
        try:
            subscription = ClientMetricsConfig(
                {
                    name: ClientMetricsConfig.keys[name].parse(text)
                    for name, text in overrides.items()
                    if name in ClientMetricsConfig.keys
                }
            )
            selectors = parse_selectors(subscription.match)
        except (InvalidConfig, ChangeRefused):
            # Another kind of controller has let it through: Java knows expressions that RE2 does not.
            continue
        found.append(Subscription(frozenset(subscription.metrics), subscription.interval_ms, selectors))
    return tuple(found)


def _new_instance(
    instance_id: Uuid, identity: ClientIdentity, subscriptions: tuple[Subscription, ...]
) -> Instance:
    matching = [one for one in subscriptions if identity.selected_by(instance_id, one.selectors)]
    names = sorted({name for one in matching for name in one.metrics})
    metrics = (_ALL_METRICS,) if _ALL_METRICS in names else tuple(names)
    interval_ms = min([_DEFAULT_INTERVAL_MS, *(one.interval_ms for one in matching)])
    # It has to be another one when the subscriptions of the client are others.
    number = crc32c(f"{metrics}{interval_ms}".encode()) ^ int.from_bytes(instance_id[:4])
    subscription_id = number - (1 << 32) if number >> 31 else number
    return Instance(instance_id, identity, subscriptions, metrics, interval_ms, subscription_id)


def _is_long(series: Series) -> bool:
    name, attributes = series
    return (
        len(name) > LABEL_LENGTH_MAX
        or sum(len(key) + len(text) for key, text in attributes) > LABEL_LENGTH_MAX
    )


def _refused_subscription(error_code: ErrorCode) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(
        error_code=error_code,
        client_instance_id=ZERO_UUID,
        subscription_id=0,
        accepted_compression_types=(),
        push_interval_ms=0,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=(),
    )
