"""The reckoning of the payments demo tells what is wrong from what only is not finished."""

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "payments"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    found = importlib.import_module("demo")
    yield found
    sys.modules.pop("demo", None)


def test_what_is_missing_is_wrong_only_when_everything_was_read(demo: Any) -> None:
    expected = Counter("abc")
    assert demo.compare(Counter("abc"), expected, is_finished=False) is demo.Verdict.RIGHT
    assert demo.compare(Counter("ab"), expected, is_finished=False) is demo.Verdict.UNFINISHED
    assert demo.compare(Counter("ab"), expected, is_finished=True) is demo.Verdict.WRONG


def test_what_is_there_twice_or_must_not_be_there_is_always_wrong(demo: Any) -> None:
    expected = Counter("abc")
    for found in ("aab", "abx"):
        assert demo.compare(Counter(found), expected, is_finished=False) is demo.Verdict.WRONG


def test_sum_that_is_too_small_may_grow_and_one_that_is_too_large_is_wrong(demo: Any) -> None:
    assert demo.compare_sums(10.004, 10.0, 0.01, is_finished=True) is demo.Verdict.RIGHT
    assert demo.compare_sums(9.0, 10.0, 0.01, is_finished=False) is demo.Verdict.UNFINISHED
    assert demo.compare_sums(9.0, 10.0, 0.01, is_finished=True) is demo.Verdict.WRONG
    assert demo.compare_sums(11.0, 10.0, 0.01, is_finished=False) is demo.Verdict.WRONG


def test_draining_goes_on_while_something_is_read_and_tells_what_is_left(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lags = {
        "clean": iter([9, 5, 0, 0, 0, 0, 0]),
        "fraud": iter([3, 8, 7, 7, 7, 7, 7]),
        "revenue": iter([0] * 9),
    }
    monkeypatch.setattr(demo, "lag_of", lambda _link, name: next(lags[name]))
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(demo.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(demo.time, "sleep", lambda _: None)
    shown: list[int] = []

    left = demo.wait_until_read(None, lambda: shown.append(1), patience_s=35)

    assert left == {"fraud": 7}
    assert len(shown) >= 4


def test_age_is_that_of_the_slowest_hundredth(demo: Any) -> None:
    ages = [number / 100 for number in range(1, 101)]
    assert (demo.quantile(ages, 0.5), demo.quantile(ages, 0.99)) == (0.5, 0.99)
    assert demo.say_ages(ages) == "p50 0.50 s, p99 0.99 s of 100 alerts"
    assert demo.say_ages([]) == "none yet"
