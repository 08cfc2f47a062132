"""The reckoning of the payments demo tells what is wrong from what only is not finished."""

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.status import QueryStatus

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


def test_lag_is_labelled_by_time_and_not_by_records(demo: Any) -> None:
    status = QueryStatus("clean", 1, "running")
    assert demo.row(status, 2_000, 2_000).endswith("2,000      1.0 s  normal")
    assert demo.row(status, 2_000, 500).endswith("2,000      4.0 s  caution")
    assert demo.row(status, 2_000, 200).endswith("2,000     10.0 s  warning")
    assert demo.row(status, 2_000, 20).endswith("2,000    100.0 s  critical")


def test_ages_of_the_first_seconds_count_and_are_shown_apart(demo: Any) -> None:
    watch = demo.AlertWatch("nowhere:1")
    watch.ages_s += [(100.0, 4.0), (110.0, 3.0), (120.0, 0.5), (130.0, 0.25)]
    assert demo.report_ages(watch, 120.0, 20) == [
        "age of an alert, whole run: p50 0.50 s, p99 4.00 s of 4 alerts",
        "  until 20 s after the first batches: p50 3.00 s, p99 4.00 s of 2 alerts",
        "  from then on: p50 0.25 s, p99 0.50 s of 2 alerts",
    ]
