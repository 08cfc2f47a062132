"""The rules of the payments example find what the generator hides, and nothing is judged by chance."""

import importlib
import sys
from itertools import islice
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[3] / "examples" / "payments"


def example() -> Any:
    if str(EXAMPLE) not in sys.path:
        sys.path.insert(0, str(EXAMPLE))
    return importlib.import_module("payments")


def test_same_seed_makes_the_same_payments_in_the_order_of_time() -> None:
    payments = example()
    first, second = (list(islice(payments.make_payments(3, 1000, 500), 2000)) for _ in range(2))

    assert first == second
    assert [item.ts_ms for item in first] == sorted(item.ts_ms for item in first)
    assert 2000 - len({item.id for item in first}) > 5


def test_each_kind_of_fraud_is_found() -> None:
    payments = example()
    memories: dict[str, Any] = {}
    reasons: set[str] = set()
    alerts = 0
    for item in islice(payments.make_payments(11, 0, 2000), 60_000):
        found = payments.judge(memories.setdefault(item.customer, payments.Memory([])), item)
        reasons.update(found)
        alerts += bool(found)

    assert reasons == {"velocity", "amount", "travel"}
    assert 60 < alerts < 1200, "fraud is rare: between one in a thousand and one in fifty"
