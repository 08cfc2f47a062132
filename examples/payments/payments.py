"""Payments as the demo makes them, and the rules by which they are judged. No Spark, no Kafka.

The stream is the same for the same seed. A few customers are hot; some payments come twice, as from a client
that tries again; some are fraud: many in a row, far above what the customer usually pays, or from places that
no traveller could reach in the time between.
"""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

CUSTOMERS: Final = 500
HOT_CUSTOMERS: Final = 10
_CITIES: Final = {
    "Berlin": (52.5, 13.4), "Paris": (48.9, 2.4), "Madrid": (40.4, -3.7), "Rome": (41.9, 12.5),
    "Warsaw": (52.2, 21.0), "Lagos": (6.5, 3.4), "Tokyo": (35.7, 139.7), "Lima": (-12.0, -77.0),
}  # fmt: skip
_NEAR: Final = ("Berlin", "Paris", "Madrid", "Rome", "Warsaw")
_FAR: Final = ("Lagos", "Tokyo", "Lima")
_SPEED_KM_PER_H_MAX: Final = 1000.0
# A customer makes three payments in a second, more or less; so many are no chance.
_PAYMENTS_IN_A_ROW: Final = 12
_ROW_MS: Final = 1_000
_BURST: Final = 25
_HISTORY: Final = 5
_TIMES_USUAL: Final = 20.0


@dataclass(frozen=True, slots=True)
class Payment:
    """One payment. `ts_ms` is when it was made."""

    id: str
    customer: str
    amount: float
    city: str
    ts_ms: int

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def customer_name(number: int) -> str:
    return f"customer-{number:04d}"


def make_payments(seed: int, start_ms: int, per_second: int) -> Iterator[Payment]:
    """Yield payments for ever, in the order of their times, duplicates included."""
    rng = random.Random(seed)
    number = 0
    bursts: dict[str, int] = {}
    while True:
        ts_ms = start_ms + number * 1000 // per_second
        # A customer in a burst pays again and again: that is what velocity is about.
        if bursts and rng.random() < 0.05:
            customer = rng.choice(list(bursts))
            bursts[customer] -= 1
            if not bursts[customer]:
                del bursts[customer]
        else:
            hot = rng.random() < 0.3
            customer = customer_name(rng.randrange(HOT_CUSTOMERS if hot else CUSTOMERS))
        if rng.random() < 0.0003:
            bursts[customer] = _BURST
        amount = round(rng.lognormvariate(3, 0.5) * (100 if rng.random() < 0.001 else 1), 2)
        home = _NEAR[sum(customer.encode()) % len(_NEAR)]
        city = rng.choice(_FAR) if rng.random() < 0.0005 else home
        payment = Payment(f"pay-{seed}-{number}", customer, amount, city, ts_ms)
        number += 1
        yield payment
        if rng.random() < 0.01:
            yield payment


@dataclass(slots=True)
class Memory:
    """What is remembered of a customer: enough to judge the next payment."""

    recent_ms: list[int]
    count: int = 0
    mean: float = 0.0
    city: str = ""
    ts_ms: int = 0


def judge(memory: Memory, payment: Payment) -> list[str]:
    """Say what is wrong with a payment, and remember it."""
    reasons = []
    memory.recent_ms = [at for at in memory.recent_ms if payment.ts_ms - at < _ROW_MS] + [payment.ts_ms]
    # Hot customers are shops: what is many in a row for others is their every day.
    if len(memory.recent_ms) > _PAYMENTS_IN_A_ROW and not is_hot(payment.customer):
        reasons.append("velocity")
    if memory.count >= _HISTORY and payment.amount > _TIMES_USUAL * memory.mean:
        reasons.append("amount")
    if memory.city and _speed_km_per_h(memory, payment) > _SPEED_KM_PER_H_MAX:
        reasons.append("travel")
    memory.count += 1
    memory.mean += (payment.amount - memory.mean) / memory.count
    memory.city, memory.ts_ms = payment.city, payment.ts_ms
    return reasons


def is_hot(customer: str) -> bool:
    return int(customer.rpartition("-")[2]) < HOT_CUSTOMERS


def _speed_km_per_h(memory: Memory, payment: Payment) -> float:
    if memory.city == payment.city:
        return 0.0
    (lat1, lon1), (lat2, lon2) = _CITIES[memory.city], _CITIES[payment.city]
    # Good enough for continents: a flat map with longitudes drawn together.
    x = (lon2 - lon1) * math.cos(math.radians((lat1 + lat2) / 2))
    kilometres = 111.2 * math.hypot(x, lat2 - lat1)
    return kilometres / max((payment.ts_ms - memory.ts_ms) / 3_600_000, 1e-9)
