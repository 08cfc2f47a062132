"""Quotas: who is limited, by which limit, and for how long one has to wait."""

import pytest

from ottla.broker.limits.quotas import QuotaKind, Quotas
from ottla.broker.limits.rate import Rate
from ottla.metadata.image import QuotaEntity

PRODUCE = QuotaKind.PRODUCE


def entity(**parts: str | None) -> QuotaEntity:
    return tuple(sorted((name.replace("_", "-"), value) for name, value in parts.items()))


def quotas(limits: dict[QuotaEntity, float], kind: QuotaKind = PRODUCE) -> Quotas:
    made = Quotas()
    made.use({entity: {kind.value: limit} for entity, limit in limits.items()})
    return made


def test_without_quotas_nobody_waits() -> None:
    free = Quotas()
    assert not free.limits_produce
    assert free.record(PRODUCE, "u", "c", 1e12, 0) == 0


def test_a_client_waits_until_its_rate_would_be_at_the_limit() -> None:
    limited = quotas({entity(user="u"): 1000})
    assert limited.limits_produce
    assert limited.record(PRODUCE, "u", "c", 10_000, 0) == 0
    # 20,000 bytes over the 10 s that a rate is taken over at least: twice the limit, so as long again.
    assert limited.record(PRODUCE, "u", "c", 10_000, 0) == 10_000


def test_what_is_old_no_longer_counts() -> None:
    limited = quotas({entity(user="u"): 1000})
    assert limited.record(PRODUCE, "u", "c", 100_000, 0) > 0
    assert limited.record(PRODUCE, "u", "c", 1, 11_000) == 0


@pytest.mark.parametrize(
    "order",
    [
        [entity(user="u", client_id="c"), entity(user="u", client_id=None), entity(user="u")],
        [entity(user="u"), entity(user=None, client_id="c"), entity(user=None, client_id=None)],
        [entity(user=None, client_id=None), entity(user=None), entity(client_id="c")],
        [entity(client_id="c"), entity(client_id=None)],
    ],
)
def test_the_most_specific_quota_holds(order: list[QuotaEntity]) -> None:
    for position in range(len(order)):
        limits = {entity: 10.0 + number for number, entity in enumerate(order) if number >= position}
        assert quotas(limits).bytes_max(PRODUCE, "u", "c") == (10 + position) * 10


def test_clients_of_a_user_share_its_quota_and_users_do_not_share_a_default() -> None:
    limited = quotas({entity(user=None): 1000})
    limited.record(PRODUCE, "u", "c1", 9000, 0)
    assert limited.record(PRODUCE, "u", "c2", 9000, 0) > 0
    assert limited.record(PRODUCE, "other", "c1", 9000, 0) == 0


def test_changed_limits_hold_for_what_was_counted_before() -> None:
    limited = quotas({entity(user="u"): 1_000_000})
    assert limited.record(PRODUCE, "u", "c", 100_000, 0) == 0
    limited.use({entity(user="u"): {PRODUCE.value: 1000}})
    assert limited.record(PRODUCE, "u", "c", 0, 0) > 0
    limited.use({})
    assert limited.record(PRODUCE, "u", "c", 0, 0) == 0


def test_what_was_refused_is_taken_back() -> None:
    limited = quotas({entity(user="u"): 1000})
    assert limited.record(PRODUCE, "u", "c", 20_000, 0) > 0
    limited.take_back(PRODUCE, "u", "c", 20_000, 0)
    assert limited.record(PRODUCE, "u", "c", 10_000, 0) == 0


def test_request_time_makes_nobody_wait_longer_than_a_sample() -> None:
    limited = quotas({entity(user="u"): 1}, QuotaKind.REQUEST)
    assert limited.record(QuotaKind.REQUEST, "u", "c", 100_000, 0) == 1000


def test_a_limit_of_nothing_makes_wait_for_the_whole_window() -> None:
    assert quotas({entity(user="u"): 0}).record(PRODUCE, "u", "c", 1, 0) == 10_000


def test_a_steady_rate_is_measured_as_it_is() -> None:
    rate = Rate(11, 1000)
    for second in range(60):
        rate.record(500, second * 1000)
    assert rate.per_second(59_999) == pytest.approx(500, rel=0.01)
