"""Asks Apache Kafka's server-side assignors and its regular expressions."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.java.oracle import Oracle, Text

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.model.uuid import Uuid


def _write_group(group: tuple[Mapping[str, Wish], Mapping[Uuid, int]]) -> str:
    wishes, topics = group
    members = [
        [one.member_id, sorted(map(str, one.topics)), one.instance_id, _shown(one.assigned)]
        for one in wishes.values()
    ]
    return json.dumps([members, {str(topic): count for topic, count in topics.items()}])


def _read_group(text: str) -> tuple[dict[str, Wish], dict[Uuid, int]]:
    members, topics = json.loads(text)
    wishes = {
        name: Wish(name, frozenset(map(Uuid.from_text, wanted)), instance_id, _read_partitions(held))
        for name, wanted, instance_id, held in members
    }
    return wishes, {Uuid.from_text(topic): count for topic, count in topics.items()}


def _shown(partitions: Mapping[Uuid, Iterable[int]]) -> dict[str, list[int]]:
    return {str(topic): sorted(numbers) for topic, numbers in partitions.items()}


def _read_partitions(shown: Mapping[str, list[int]]) -> dict[Uuid, frozenset[int]]:
    return {Uuid.from_text(topic): frozenset(numbers) for topic, numbers in shown.items()}


GROUP_TEXT = Text(_write_group, _read_group)
"""How a group is written down as an example."""


class GroupAssignors:
    """Kafka's, asked one question at a time."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def assign(
        self, assignor: str, wishes: Mapping[str, Wish], topics: Mapping[Uuid, int]
    ) -> dict[str, Partitions]:
        """Return what Kafka's assignor makes of it. Takes what our assignors take."""
        members = [
            {
                "id": wish.member_id,
                "instance": wish.instance_id,
                "topics": sorted(map(str, wish.topics)),
                "assigned": _shown(wish.assigned),
            }
            for wish in wishes.values()
        ]
        named = {str(topic): count for topic, count in topics.items()}
        answer = self._ask(assignor=assignor, members=members, topics=named)
        return {member_id: _read_partitions(assigned) for member_id, assigned in answer["assignment"].items()}

    def match(self, regex: str, names: Iterable[str]) -> list[str] | None:
        """Return the names that an expression matches; None when Kafka refuses it."""
        answer = self._ask(regex=regex, names=list(names))
        matches: list[str] | None = answer.get("matches")
        return matches

    def _ask(self, **question: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._oracle.ask("GroupAssignors", json.dumps(question)))
        assert "error" not in answer, answer["error"]
        return answer
