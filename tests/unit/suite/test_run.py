"""What a run hands down to its tests."""

import subprocess
from collections.abc import Mapping, Sequence

import pytest
from tests.suite.run import main


def test_the_order_of_tests_changes_nothing_that_they_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def call(command: Sequence[str], cwd: object, env: Mapping[str, str]) -> int:
        seen.append((command, env))
        return 0

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setenv("SEED", "3")
    assert main(["--what", "model", "--order", "3"]) == 0
    ((command, environment),) = seen
    assert command[command.index("--randomly-seed") + 1] == "3"
    assert "SEED" not in environment
