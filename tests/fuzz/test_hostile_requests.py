"""Spoilt requests that reach handlers end in an answer or a closed connection, never in an error of ours.

`make crash WHAT=requests` has more.
"""

import pytest
from tests.fuzz.hostile_requests import run


def test_spoilt_requests_are_answered_or_end_the_connection() -> None:
    report = run(requests=1_000, seed=1, is_wide=False)
    # Were all closed, the requests would not reach the handlers; were none, they would not be spoilt.
    assert 100 < report.closed < 900
    assert report.answered > 200


@pytest.mark.thorough(guard="tests/fuzz/test_hostile_requests.py")
@pytest.mark.parametrize("seed", range(2, 6))
def test_very_many_spoilt_requests_are_answered_or_end_the_connection(seed: int) -> None:
    assert run(requests=50_000, seed=seed).requests == 50_000
