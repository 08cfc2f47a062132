"""The quota on partitions that come and go: tokens, and who is refused or has to wait."""

import pytest

from ottla.metadata.image import QuotaEntity
from ottla.quorum.controller.decision import Caller, Refusal
from ottla.quorum.controller.mutation_quota import (
    BUCKETS_MAX,
    MUTATION_RATE,
    MutationCharge,
    MutationQuotas,
    TokenBucket,
)
from ottla.security.principal import Principal
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


def charge_for(
    quotas: MutationQuotas, entity: QuotaEntity, client_id: str, version: int = 6
) -> MutationCharge | None:
    caller = Caller(Principal("User", "u"), client_id, "127.0.0.1", version)
    return quotas.charge({entity: {MUTATION_RATE: RATE}}, caller, 6, WINDOW_S, 0)


def test_clients_under_one_default_have_a_bucket_each() -> None:
    quotas = MutationQuotas()
    default = (("client-id", None),)
    for client_id in ("a", "b"):
        charged = charge_for(quotas, default, client_id)
        assert charged is not None
        charged(100)
    again = charge_for(quotas, default, "a")
    assert again is not None
    with pytest.raises(Refusal):
        again(1)


def test_a_version_that_does_not_know_the_error_is_not_refused() -> None:
    quotas = MutationQuotas()
    for _ in range(2):
        charged = charge_for(quotas, (("client-id", None),), "a", version=5)
        assert charged is not None
        charged(100)
    assert charged is not None
    assert charged.throttle_ms(0) > 0


def test_a_client_without_a_quota_is_not_charged() -> None:
    assert charge_for(MutationQuotas(), (("user", "other"),), "c") is None


OF_CLIENTS: dict[QuotaEntity, dict[str, float]] = {
    (("client-id", None), ("user", None)): {MUTATION_RATE: 1.0}
}


def waits(quotas: MutationQuotas, user: str, client_id: str, partitions: int, now_ms: int) -> int:
    caller = Caller(Principal("User", user), client_id, "10.0.0.1", 6)
    charge = quotas.charge(OF_CLIENTS, caller, 9, 1, now_ms)
    assert charge is not None
    charge(partitions)
    return charge.throttle_ms(now_ms)


def test_whoever_has_many_client_ids_frees_nobody_and_does_not_escape() -> None:
    quotas = MutationQuotas()
    before = waits(quotas, "alice", "app", 100, 1_000)
    flood = [waits(quotas, "mallory", f"id-{number}", 1, 1_000) for number in range(2 * BUCKETS_MAX)]
    assert waits(quotas, "alice", "app", 0, 1_000) == before > 90_000
    assert flood[0] == 0 < flood[-1]
    later_ms = 3_600_000
    assert waits(quotas, "mallory", "id-1", 1, later_ms) == 0
    assert waits(quotas, "alice", "app", 0, 60_000) > 0
