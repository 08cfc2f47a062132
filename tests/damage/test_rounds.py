"""A few rounds of damage with fixed seeds. `make crash WHAT=damage` runs many."""

from pathlib import Path

import pytest
from tests.damage.rounds import run_rounds


@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(
            24,
            marks=pytest.mark.thorough(guard="tests/damage/test_rounds.py::test_nothing_is_lost_in_silence"),
        ),
    ],
)
def test_nothing_is_lost_in_silence(tmp_path: Path, seed: int) -> None:
    outcome = run_rounds(tmp_path, seed, 4)
    assert sum(outcome.values()) == 4
