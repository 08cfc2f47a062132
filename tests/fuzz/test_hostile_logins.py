"""Hostile peers before the login get nothing, and break nothing. `make crash WHAT=logins` tries many more."""

import pytest
from tests.fuzz.hostile_logins import run_handshakes, run_logins


@pytest.mark.parametrize("seed", range(2))
def test_nobody_is_served_without_a_login(seed: int) -> None:
    report = run_logins(5_000, seed)
    # Were all of one kind, the talks would not reach beyond their first step.
    assert min(report.ends["refused"], report.ends["ConnectionEnded"], report.ends["still open"]) > 100


def test_spoilt_handshakes_fail_or_wait() -> None:
    report = run_handshakes(500, 0)
    assert report.ends["failed"] > 100
