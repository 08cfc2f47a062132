"""The quota on changes of the cluster's metadata: partitions created and deleted per second (KIP-599).

A token bucket for each user and client, as in Kafka: `controller.quota.window.num` windows worth of tokens at
most, `controller_mutation_rate` more each second, one token for each partition. A request is let through as
long as the bucket is not below zero, so a single large one always is. Newer versions of the requests are
strict: what comes while the bucket is below zero is refused with THROTTLING_QUOTA_EXCEEDED, topic by topic.
Older ones do not know that error: they are done, and the client has to wait.

The controller charges, for its own clients and for those whose requests are forwarded to it.

Pure: time comes with each call.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ottla.metadata.image import QuotaEntity
from ottla.metadata.quota_limits import find_limit
from ottla.quorum.controller.decision import Caller, Refusal
from ottla.wire.error_code import ErrorCode

MUTATION_RATE: Final = "controller_mutation_rate"

BUCKETS_MAX: Final = 10_000
"""How many users and clients are followed. A peer can choose its client id, so there has to be a bound."""
BUCKETS_OF_A_USER_MAX: Final = 1_000
"""How many of them one user has. All further client ids of that user are one: none escapes by a new name."""
_FORGET_EVERY_MS: Final = 1_000


class TokenBucket:
    """Tokens that come at a rate, up to a bound. More may be taken than there are."""

    __slots__ = ("_full_ms", "_tokens", "_updated_ms", "_window_s")

    def __init__(self, window_s: int) -> None:
        """A full bucket has what comes in `window_s` seconds."""
        self._window_s = window_s
        self._tokens = float("inf")
        self._updated_ms = 0
        self._full_ms = 0.0

    def is_full(self, now_ms: int) -> bool:
        """Say whether all that was taken has come again, so that a new bucket would say the same."""
        return now_ms >= self._full_ms

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
        missing = self._window_s * rate - self._tokens
        self._full_ms = now_ms + missing / rate * 1000 if rate > 0 else float("inf")
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
        # Each with the user for whom it began.
        self._buckets: dict[tuple[str, str], tuple[TokenBucket, str]] = {}
        self._counts: Counter[str] = Counter()
        self._others: dict[str, TokenBucket] = {}
        self._forgot_ms = 0

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
        bucket = self._bucket(caller.user, limit.shared_by, window_s, now_ms)
        return MutationCharge(bucket, limit.value, caller.version >= strict_from, now_ms)

    def _bucket(self, user: str, shared_by: tuple[str, str], window_s: int, now_ms: int) -> TokenBucket:
        known = self._buckets.get(shared_by)
        if known is not None:
            return known[0]
        if self._has_too_many(user):
            self._forget_full(now_ms)
        bucket = TokenBucket(window_s)
        if self._has_too_many(user):
            return self._others.setdefault(user, bucket)
        self._buckets[shared_by] = bucket, user
        self._counts[user] += 1
        return bucket

    def _has_too_many(self, user: str) -> bool:
        return self._counts[user] >= BUCKETS_OF_A_USER_MAX or len(self._buckets) >= BUCKETS_MAX

    def _forget_full(self, now_ms: int) -> None:
        """Forget what a new one would be the same as, and look for it once a second at most."""
        if now_ms - self._forgot_ms < _FORGET_EVERY_MS:
            return
        self._forgot_ms = now_ms
        self._buckets = {key: one for key, one in self._buckets.items() if not one[0].is_full(now_ms)}
        self._others = {user: one for user, one in self._others.items() if not one.is_full(now_ms)}
        self._counts = Counter(user for _, user in self._buckets.values())
