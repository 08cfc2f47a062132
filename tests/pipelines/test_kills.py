"""A short turn of the kill campaign. The long one is `make crash WHAT=pipelines`."""

from pathlib import Path

import pytest
from tests.pipelines.kills import Campaign

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.thorough(guard="tests/pipelines/test_sink_tasks.py"),
]


def test_nothing_is_lost_or_doubled_when_processes_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert Campaign(tmp_path, records=30_000, kills=3, seed=3).run() == []
