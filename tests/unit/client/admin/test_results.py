"""Outcomes of many items: one that failed spoils no other."""

import pytest

from ottla.client.admin.results import Results
from ottla.client.errors import BrokerError, ClientError
from ottla.wire.error_code import ErrorCode

REFUSED = BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, "cannot create topic 'b'")


def _results() -> Results[str, int]:
    outcomes: dict[str, int | ClientError] = {"a": 1, "b": REFUSED, "c": 3}
    return Results(outcomes)


def test_looking_at_an_item_gives_its_value_or_raises_its_error() -> None:
    results = _results()
    assert results["a"] == 1
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        results["b"]
    with pytest.raises(KeyError):
        results["d"]


def test_errors_can_be_looked_at_without_raising() -> None:
    results = _results()
    assert (results.succeeded, results.failed) == ({"a": 1, "c": 3}, {"b": REFUSED})
    assert (list(results), len(results)) == (["a", "b", "c"], 3)


def test_check_returns_everything_or_raises_the_first_error() -> None:
    with pytest.raises(BrokerError):
        _results().check()
    assert Results({"a": 1}).check() == {"a": 1}
