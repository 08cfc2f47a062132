"""A few rounds of damage with fixed seeds. `make damage` runs many."""

from pathlib import Path

import pytest
from tests.damage.rounds import run_rounds


@pytest.mark.parametrize("seed", [0, 24])
def test_nothing_is_lost_in_silence(tmp_path: Path, seed: int) -> None:
    outcome = run_rounds(tmp_path, seed, 4)
    assert sum(outcome.values()) == 4
