"""What tests say of their nodes: a typo is an error there, and records find their leader."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.testing import plugin
from ottla.testing.conversation import NodeSaid
from ottla.testing.node import ThreadNode
from ottla.testing.process_cluster import ProcessCluster
from ottla.wire.error_code import ErrorCode


def marked(*arguments: Any, **keywords: Any) -> dict[str, str]:
    mark = pytest.mark.kafka(*arguments, **keywords).mark
    node = SimpleNamespace(get_closest_marker=lambda _name: mark)
    request: Any = SimpleNamespace(node=node)
    return plugin._settings(request)


def test_a_setting_with_a_typo_is_an_error() -> None:
    assert marked(settings={"num.partitions": "7"}) == {"num.partitions": "7"}
    with pytest.raises(
        pytest.UsageError, match=r"unknown configuration num\.partitons; did you mean num\.partitions"
    ):
        marked(settings={"num.partitons": "7"})
    with pytest.raises(pytest.UsageError, match=r"Invalid value x for configuration num\.partitions"):
        marked(settings={"num.partitions": "x"})
    with pytest.raises(pytest.UsageError, match="names and values of settings are text"):
        marked(settings={"num.partitions": 7})
    with pytest.raises(pytest.UsageError, match="takes nothing else"):
        marked(setting={})
    with pytest.raises(pytest.UsageError, match="takes nothing else"):
        marked({}, settings={})


class FakeNode:
    """A node that gives these answers, one after the other."""

    is_running = True

    def __init__(self, *answers: ErrorCode | int) -> None:
        self.answers = list(answers)

    def produce(self, *_values: Any, **_facts: Any) -> int:
        answer = self.answers.pop(0)
        if isinstance(answer, ErrorCode):
            raise NodeSaid(answer, "no")
        return answer


def test_a_cluster_writes_to_the_node_that_leads(tmp_path: Path) -> None:
    cluster = ProcessCluster(tmp_path)
    other = ErrorCode.NOT_LEADER_OR_FOLLOWER
    dead, first, second = FakeNode(), FakeNode(other, other), FakeNode(other, 5)
    dead.is_running = False
    nodes: Any = [dead, first, second]
    cluster.nodes = nodes
    assert cluster.produce("orders", "coffee") == 5
    nodes[:] = [FakeNode(ErrorCode.MESSAGE_TOO_LARGE)]
    with pytest.raises(NodeSaid, match="MESSAGE_TOO_LARGE"):
        cluster.produce("orders", "coffee")


def test_a_value_that_is_no_text_is_refused_with_a_sentence(tmp_path: Path) -> None:
    five: Any = 5
    with pytest.raises(TypeError, match="keys and values are text, bytes or None, not 5"):
        ThreadNode(tmp_path).produce("orders", five)
