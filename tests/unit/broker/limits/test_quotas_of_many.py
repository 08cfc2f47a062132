"""Whoever has many client ids neither escapes a quota nor frees others from theirs."""

from collections.abc import Mapping

from ottla.broker.limits.quotas import ENTITIES_MAX, ENTITIES_OF_A_USER_MAX, QuotaKind, Quotas
from ottla.metadata.image import QuotaEntity

LIMIT = 1_000.0
Limits = Mapping[QuotaEntity, Mapping[str, float]]
OF_USERS: Limits = {(("user", None),): {"producer_byte_rate": LIMIT}}
OF_CLIENTS: Limits = {(("client-id", None), ("user", None)): {"producer_byte_rate": LIMIT}}
PRODUCE = QuotaKind.PRODUCE


def quotas(limits: Limits) -> Quotas:
    made = Quotas()
    made.use(limits)
    return made


def test_a_flood_of_client_ids_clears_nobodys_rate() -> None:
    made = quotas(OF_CLIENTS)
    before = made.record(PRODUCE, "alice", "app", 100 * LIMIT, 1_000)
    assert before > 0
    for number in range(2 * ENTITIES_MAX):
        made.record(PRODUCE, "mallory", f"id-{number}", 1, 1_001)
    assert made.record(PRODUCE, "alice", "app", 0, 1_001) >= before - 100


def test_a_flood_of_client_ids_of_one_user_does_not_free_it() -> None:
    made = quotas(OF_USERS)
    for number in range(2 * ENTITIES_MAX):
        waits = made.record(PRODUCE, "mallory", f"id-{number}", LIMIT, 1_000)
    assert waits > 1_000_000


def test_client_ids_beyond_a_number_share_one_rate() -> None:
    made = quotas(OF_CLIENTS)
    waits = [
        made.record(PRODUCE, "mallory", f"id-{number}", 2 * LIMIT, 1_000)
        for number in range(ENTITIES_OF_A_USER_MAX + 100)
    ]
    assert set(waits[:ENTITIES_OF_A_USER_MAX]) == {0}
    assert waits[-1] > 0


def test_client_ids_that_are_no_longer_used_make_room() -> None:
    made = quotas(OF_CLIENTS)
    for number in range(ENTITIES_OF_A_USER_MAX + 100):
        made.record(PRODUCE, "alice", f"id-{number}", 2 * LIMIT, 1_000)
    hour_ms = 3_600_000
    assert made.record(PRODUCE, "alice", "new", LIMIT, hour_ms) == 0
    assert (PRODUCE, "alice", "new") in made._rates
    assert len(made._rates) == 1
