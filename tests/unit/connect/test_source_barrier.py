"""A source task begins only after all earlier ones are fenced, and only if it is of the newest generation."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.connect.errors import Superseded
from ottla.connect.running import source
from ottla.connect.running.source import SourceRun


class Story:
    """What happens around the start of a task, in its order. A change comes after so many looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change_after: int) -> None:
        self.events: list[str] = []
        self._looks_left = change_after
        story = self

        class Producer:
            def __init__(self, **_options: Any) -> None:
                pass

            async def __aenter__(self) -> "Producer":
                story.events.append("producer")
                return self

            async def __aexit__(self, *_error: object) -> None:
                story.events.append("closed")

        monkeypatch.setattr(source, "Producer", Producer)

    async def wait_until_fenced(self, _is_stopping: Any) -> None:
        self.events.append("fenced")

    async def check(self) -> None:
        self.events.append("look")
        if not self._looks_left:
            raise Superseded("there is a newer generation")
        self._looks_left -= 1

    async def catch_up(self) -> None:
        self.events.append("positions")

    async def start(self, _context: Any) -> None:
        self.events.append("task")

    async def stop(self) -> None:
        self.events.append("stopped")

    def run(self) -> list[str]:
        """Run a task that is to stop as soon as it has started."""
        task: Any = SimpleNamespace(transaction_timeout_ms=1000, start=self.start, stop=self.stop)
        positions: Any = SimpleNamespace(catch_up=self.catch_up)
        unused: Any = None
        run = SourceRun("in", 0, {}, task, unused, positions, self, "offsets", {}, "id", unused)
        asyncio.run(run.run(lambda: None, lambda: True))
        return self.events


def test_a_task_starts_after_the_earlier_ones_are_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Story(monkeypatch, change_after=2).run()
    assert events == ["fenced", "look", "producer", "look", "positions", "task", "stopped", "closed"]


@pytest.mark.parametrize(
    ("change_after", "begun"),
    [
        (0, ["fenced", "look"]),
        # Its producer may be newer than the fencing, which nothing but another look can tell.
        (1, ["fenced", "look", "producer", "look", "closed"]),
    ],
)
def test_a_task_of_an_earlier_generation_does_not_start(
    monkeypatch: pytest.MonkeyPatch, change_after: int, begun: list[str]
) -> None:
    story = Story(monkeypatch, change_after)
    with pytest.raises(Superseded):
        story.run()
    assert story.events == begun
