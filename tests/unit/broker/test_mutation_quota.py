"""The quota on partitions that come and go: tokens, and who is refused or has to wait."""

import pytest

from ottla.broker.mutation_quota import MutationCharge, TokenBucket
from ottla.broker.quotas import QuotaKind, Quotas
from ottla.quorum.controller.decision import Refusal
from ottla.wire.error_code import ErrorCode

RATE = 2.0
WINDOW_S = 11


def charge(bucket: TokenBucket, now_ms: int, *, is_strict: bool = True) -> MutationCharge:
    return MutationCharge(bucket, RATE, is_strict, now_ms)


def test_a_bucket_is_full_at_first_and_holds_no_more_than_that() -> None:
    bucket = TokenBucket(WINDOW_S)
    assert bucket.refill(RATE, 5_000_000) == 22
    assert bucket.take(RATE, 20, 5_000_000) == 2
    assert bucket.refill(RATE, 5_001_500) == 5
    assert bucket.refill(RATE, 6_000_000) == 22


def test_one_large_request_is_let_through() -> None:
    bucket = TokenBucket(WINDOW_S)
    large = charge(bucket, 0)
    large(100)
    assert large.throttle_ms(0) == 0


def test_a_strict_request_is_refused_while_tokens_are_owed() -> None:
    bucket = TokenBucket(WINDOW_S)
    charge(bucket, 0)(100)
    refused = charge(bucket, 1000)
    with pytest.raises(Refusal) as refusal:
        refused(1)
    assert refusal.value.error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    # 78 tokens were owed, two have come since.
    assert refused.throttle_ms(1000) == 38_000
    assert refused.throttle_ms(31_000) == 8_000, "what was waited for already counts"
    charge(bucket, 39_000)(1)


def test_a_request_of_old_is_done_and_has_to_wait() -> None:
    bucket = TokenBucket(WINDOW_S)
    first = charge(bucket, 0, is_strict=False)
    first(22)
    assert first.throttle_ms(0) == 0
    second = charge(bucket, 0, is_strict=False)
    second(4)
    second(6)
    assert second.throttle_ms(0) == 5_000


def test_clients_under_one_default_have_a_bucket_each() -> None:
    quotas = Quotas()
    quotas.use({(("client-id", None),): {QuotaKind.MUTATION.value: RATE}})
    assert quotas.limits_mutations
    for client_id in ("a", "b"):
        charged = quotas.charge_mutations("u", client_id, True, WINDOW_S, 0)
        assert charged is not None
        charged(100)
    again = quotas.charge_mutations("u", "a", True, WINDOW_S, 0)
    assert again is not None
    with pytest.raises(Refusal):
        again(1)


def test_without_a_quota_nobody_is_charged() -> None:
    quotas = Quotas()
    quotas.use({(("user", "other"),): {QuotaKind.MUTATION.value: RATE}})
    assert quotas.charge_mutations("u", "c", True, WINDOW_S, 0) is None
