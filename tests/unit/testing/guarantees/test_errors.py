"""What an error tells about an operation."""

import pytest

from ottla.testing.guarantees.errors import Stage, judge_plain, judge_transaction


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("_TIMED_OUT", ("info", True)),
        ("_TRANSPORT", ("info", True)),
        ("NOT_LEADER_OR_FOLLOWER", ("info", True)),
        ("something new", ("info", True)),
        ("INVALID_PRODUCER_EPOCH", ("fail", False)),
        ("UNKNOWN_TOPIC_OR_PARTITION", ("fail", False)),
        ("PRODUCER_FENCED", ("fail", True)),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", ("fail", True)),
    ],
)
def test_plain_errors(error: str, verdict: tuple[str, bool]) -> None:
    assert judge_plain(error) == verdict


@pytest.mark.parametrize(
    ("stage", "error", "abort_error", "verdict"),
    [
        (Stage.BEFORE_COMMIT, "_TIMED_OUT", None, ("fail", False)),
        (Stage.BEFORE_COMMIT, "_TIMED_OUT", "_FATAL", ("fail", True)),
        (Stage.COMMIT, "PRODUCER_FENCED", None, ("fail", False)),
        (Stage.COMMIT, "PRODUCER_FENCED", "_FATAL", ("info", True)),
        (Stage.COMMIT, "PRODUCER_FENCED", "INVALID_TXN_STATE", ("fail", True)),
        (Stage.COMMIT, "_TIMED_OUT", None, ("info", True)),
    ],
)
def test_errors_of_transactions(
    stage: Stage, error: str, abort_error: str | None, verdict: tuple[str, bool]
) -> None:
    assert judge_transaction(stage, error, abort_error) == verdict
