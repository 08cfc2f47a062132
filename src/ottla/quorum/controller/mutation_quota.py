"""The quota on changes of the cluster's metadata: partitions created and deleted per second (KIP-599).

A token bucket for each user and client, as in Kafka: `controller.quota.window.num` windows worth of tokens at
most, `controller_mutation_rate` more each second, one token for each partition. A request is let through as
long as the bucket is not below zero, so a single large one always is. Newer versions of the requests are
strict: what comes while the bucket is below zero is refused with THROTTLING_QUOTA_EXCEEDED, topic by topic.
Older ones do not know that error: they are done, and the client has to wait.

The controller charges, for its own clients and for those whose requests are forwarded to it.

Pure: time comes with each call.
"""

from collections.abc import Mapping
from typing import Final

from ottla.metadata.image import QuotaEntity
from ottla.metadata.quota_limits import find_limit
from ottla.quorum.controller.decision import Caller, Refusal
from ottla.wire.error_code import ErrorCode

MUTATION_RATE: Final = "controller_mutation_rate"

BUCKETS_MAX: Final = 10_000
"""How many users and clients are followed. A peer can choose its client id, so there has to be a bound."""


class TokenBucket:
    """Tokens that come at a rate, up to a bound. More may be taken than there are."""

    __slots__ = ("_tokens", "_updated_ms", "_window_s")

    def __init__(self, window_s: int) -> None:
        """A full bucket has what comes in `window_s` seconds."""
        self._window_s = window_s
        self._tokens = float("inf")
        self._updated_ms = 0

    def refill(self, rate: float, now_ms: int) -> float:
        """Add what has come since, and return how much there is."""
        come = rate * (now_ms - self._updated_ms) / 1000
        self._tokens = min(self._tokens + come, self._window_s * rate)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, rate: float, amount: float, now_ms: int) -> float:
        """Take tokens out, and return how many are left. May be less than nothing."""
        self.refill(rate, now_ms)
        self._tokens -= amount
        return self._tokens


class MutationCharge:
    """What one request is charged with."""

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "_rate", "_throttle_ms")

    def __init__(self, bucket: TokenBucket, rate: float, is_strict: bool, now_ms: int) -> None:
        self._bucket = bucket
        self._rate = rate
        self._is_strict = is_strict
        self._now_ms = now_ms
        self._throttle_ms = 0

    def __call__(self, partitions: int) -> None:
        """Take tokens for partitions that are to be created or deleted. Raises `Refusal`."""
        bucket, rate, now_ms = self._bucket, self._rate, self._now_ms
        if not self._is_strict:
            self._note(bucket.take(rate, partitions, now_ms))
        elif self._note(bucket.refill(rate, now_ms)):
            raise Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        else:
            bucket.take(rate, partitions, now_ms)

    def _note(self, tokens: float) -> bool:
        if tokens >= 0:
            return False
        # So long that the bucket is at zero again.
        self._throttle_ms = min(round(-tokens / self._rate * 1000), 0x7FFFFFFF)
        return True

    def throttle_ms(self, now_ms: int) -> int:
        """Return for how long the client has to wait, from now on."""
        return max(0, self._throttle_ms - (now_ms - self._now_ms))


class MutationQuotas:
    """The buckets of all clients that there is a quota for. They outlive the loss of the leadership."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def charge(
        self,
        limits: Mapping[QuotaEntity, Mapping[str, float]],
        caller: Caller,
        strict_from: int,
        window_s: int,
        now_ms: int,
    ) -> MutationCharge | None:
        """Return what a request that creates or deletes partitions is charged with. None: no quota."""
        limit = find_limit(limits, MUTATION_RATE, caller.user, caller.client_id)
        if limit is None:
            return None
        if len(self._buckets) >= BUCKETS_MAX:
            self._buckets.clear()
        bucket = self._buckets.setdefault(limit.shared_by, TokenBucket(window_s))
        return MutationCharge(bucket, limit.value, caller.version >= strict_from, now_ms)
