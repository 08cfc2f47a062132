"""Asks Apache Kafka's server-side assignors and its regular expressions."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from tests.java.jars import compiled, java_command

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.model.uuid import Uuid


class GroupAssignors:
    """A Java process that answers one question at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("GroupAssignors.java"), "GroupAssignors"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def assign(
        self, assignor: str, wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]
    ) -> dict[str, Partitions]:
        """Return what Kafka's assignor makes of it. Takes what our assignors take."""
        members = [
            {
                "id": wish.member_id,
                "instance": wish.instance_id,
                "topics": [str(topic) for topic in wish.topics],
                "assigned": {str(topic): sorted(numbers) for topic, numbers in wish.assigned.items()},
            }
            for wish in wishes.values()
        ]
        named = {str(topic): count for topic, count in topics.items()}
        answer = self._ask(assignor=assignor, members=members, topics=named)
        return {
            member_id: {Uuid.from_text(topic): frozenset(numbers) for topic, numbers in assigned.items()}
            for member_id, assigned in answer["assignment"].items()
        }

    def match(self, regex: str, names: Iterable[str]) -> list[str] | None:
        """Return the names that an expression matches; None when Kafka refuses it."""
        answer = self._ask(regex=regex, names=list(names))
        matches: list[str] | None = answer.get("matches")
        return matches

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the Java process ended"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer
