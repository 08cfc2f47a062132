"""The producer's properties."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.properties import LONG_MAX, CommonSettings, InvalidProperty, prop
from ottla.records.attributes import CODEC_NAMES


@dataclass(frozen=True, kw_only=True)
class ProducerSettings(CommonSettings):
    """Kafka's producer properties, as far as this client has them."""

    acks: str = prop(
        "Which replicas must have a record before it counts as sent: 0, 1 or all.",
        "all",
        choices=("all", "-1", "1", "0"),
    )
    batch_size: int = prop("The maximum size of a batch in bytes.", 16_384, low=1)
    linger_ms: int = prop("How long a batch waits for more records.", 5, low=0, high=LONG_MAX)
    buffer_memory: int = prop(
        "The memory for records that wait to be sent. If it is full, `send` waits.",
        33_554_432,
        low=1,
        high=LONG_MAX,
    )
    max_block_ms: int = prop("How long `send` may wait for memory or metadata.", 60_000, low=0, high=LONG_MAX)
    max_request_size: int = prop("The maximum size of a request in bytes.", 1_048_576, low=1)
    max_in_flight_requests_per_connection: int = prop(
        "The maximum number of requests in flight per connection.", 5, low=1
    )
    delivery_timeout_ms: int = prop(
        "How long sending a record may take in total, including retries.", 120_000, low=1
    )
    compression_type: str = prop("How batches are compressed.", "none", choices=CODEC_NAMES)
    compression_gzip_level: int = prop(
        "The compression level of gzip; -1 for its default.", -1, low=-1, high=9
    )
    compression_lz4_level: int = prop("The compression level of lz4.", 9, low=1, high=17)
    compression_zstd_level: int = prop("The compression level of zstd.", 3, low=-131_072, high=22)
    partitioner_ignore_keys: bool = prop(
        "Whether records with a key are distributed like records without a key.", False
    )
    partitioner_adaptive_partitioning_enable: bool = prop(
        "Whether slow partitions get fewer of the records without a key.", True
    )
    enable_idempotence: bool = prop("Whether the broker drops duplicates that retries cause.", True)
    transactional_id: str | None = prop(
        "The id of this producer for transactions. It stays the same when the producer restarts.", None
    )
    transaction_timeout_ms: int = prop(
        "After this time the broker aborts an open transaction.", 60_000, low=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compression_gzip_level == 0:
            raise InvalidProperty("compression.gzip.level is 0: it must be -1, or from 1 to 9")
        if self.transactional_id is not None and not self.is_idempotent:
            raise InvalidProperty("transactional.id needs acks=all and enable.idempotence=true")
        if self.is_idempotent and self.max_in_flight_requests_per_connection > 5:
            raise InvalidProperty(
                "max.in.flight.requests.per.connection must be at most 5, because a broker remembers five "
                "batches per producer"
            )
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise InvalidProperty("delivery.timeout.ms must be at least linger.ms + request.timeout.ms")

    @classmethod
    def _check_given(cls, values: Mapping[str, Any]) -> None:
        acks = values.get("acks", "all")
        if values.get("enable_idempotence") and acks not in ("all", "-1"):
            raise InvalidProperty(
                f"enable.idempotence needs acks=all, and acks is {acks}: leave one of them out"
            )
        super()._check_given(values)

    @classmethod
    def _without_effect(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from super()._without_effect(values)
        codec = values.get("compression_type", "none")
        yield from (
            (f"compression.{name}.level", f"compression.type={codec}")
            for name in ("gzip", "lz4", "zstd")
            if name != codec
        )
        if values.get("transactional_id") is None:
            yield "transaction.timeout.ms", "no transactional.id"

    @property
    def required_acks(self) -> int:
        """Return acks as they travel."""
        return -1 if self.acks in ("all", "-1") else int(self.acks)

    @property
    def is_idempotent(self) -> bool:
        """Say whether the producer numbers its batches. Weaker acks switch that off, as in Kafka."""
        return self.enable_idempotence and self.required_acks == -1
