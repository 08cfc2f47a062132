"""Killed under load, a node loses nothing that it acknowledged. `make crash WHAT=node` kills more."""

from pathlib import Path

import pytest
from tests.cluster.crashes import crash


def test_acknowledged_records_survive_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crashes = crash(tmp_path, kills=3, seed=1)
    with capsys.disabled():
        print(f"\n{crashes}")
    assert crashes.acknowledged > 0
