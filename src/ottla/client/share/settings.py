"""The share consumer's properties."""

from dataclasses import dataclass
from typing import Final

from ottla.client.properties import CommonSettings, InvalidProperty, prop

# What the broker knows the acquire modes by.
_ACQUIRE_MODES: Final = {"batch_optimized": 0, "record_limit": 1}


@dataclass(frozen=True, kw_only=True)
class ShareConsumerSettings(CommonSettings):
    """Kafka's properties of share consumers, as far as this client has them."""

    group_id: str = prop("The share group. Its members share the records.", "")
    share_acknowledgement_mode: str = prop(
        "Whether records count as done when the next ones are polled (implicit), or each one must be "
        "acknowledged (explicit).",
        "implicit",
        choices=("implicit", "explicit"),
    )
    share_acquire_mode: str = prop(
        "Whether whole batches are acquired, which costs less (batch_optimized), or never more records than "
        "max.poll.records (record_limit).",
        "batch_optimized",
        choices=tuple(_ACQUIRE_MODES),
    )
    max_poll_records: int = prop(
        "The maximum number of records that one call returns. With share.acquire.mode=record_limit, also the "
        "maximum number that is acquired for it.",
        500,
        low=1,
    )
    max_poll_interval_ms: int = prop(
        "A member that does not poll for this long leaves the group.", 300_000, low=1
    )
    fetch_min_bytes: int = prop("A broker answers a fetch when it has this many bytes.", 1, low=0)
    fetch_max_wait_ms: int = prop(
        "A broker answers a fetch after this time even if it has fewer bytes.", 500, low=0
    )
    fetch_max_bytes: int = prop("The maximum number of bytes in one response.", 52_428_800, low=1)
    check_crcs: bool = prop("Whether the checksum of every batch is checked.", True)
    client_rack: str = prop("The rack of this client. It is sent to the group.", "")
    default_api_timeout_ms: int = prop("How long calls that wait for brokers may take.", 60_000, low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.group_id:
            raise InvalidProperty("group.id is missing: a share consumer is always in a group")

    @property
    def is_explicit(self) -> bool:
        """Say whether each record must be acknowledged."""
        return self.share_acknowledgement_mode == "explicit"

    @property
    def acquire_mode(self) -> int:
        """Return the acquire mode as the broker knows it."""
        return _ACQUIRE_MODES[self.share_acquire_mode]

    @property
    def limits_records(self) -> bool:
        """Say whether never more records may be acquired than were asked for."""
        return self.share_acquire_mode == "record_limit"
