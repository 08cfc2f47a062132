"""The pages of the guide about our own client do what they say: their code is run against a node."""

from pathlib import Path

import pytest
from tests.cluster.test_guide import run_page
from tests.support.ottla_node import OttlaNode

from ottla.client.journey import Stage, Step
from ottla.model.ids import TopicPartition


def test_producing_page_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The page writes a file where it is.
    monkeypatch.chdir(tmp_path)
    with OttlaNode(tmp_path / "node", {"num.partitions": "1"}) as node:
        names = run_page("producing.md", node)
    assert (names["offset"], names["done"], names["topic"], names["json_offset"]) == (0, 1000, "invoices", 0)
    assert names["last"] == 2 + 1000 + 1 + 1 + 100 - 1


def test_administration_page_runs_as_it_is(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "node") as node:
        names = run_page("administration.md", node)
    assert names["topics"] == ["ledger"]
    assert (names["created"], names["ledger_was_there"]) == (["archive"], True)
    assert (names["lag"], names["plan"]) == (6, {TopicPartition("archive", 0): 0})
    assert (names["hanging"], names["brokers"]) == (0, [0])


def test_queues_page_runs_as_it_is(tmp_path: Path) -> None:
    settings = {"group.share.min.heartbeat.interval.ms": "100", "group.share.heartbeat.interval.ms": "300"}
    with OttlaNode(tmp_path / "node", settings) as node:
        names = run_page("queues.md", node)
    assert names["first_ten"] == list(range(10))


def test_journey_page_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OttlaNode(tmp_path / "node", {"group.initial.rebalance.delay.ms": "0"}) as node:
        steps = run_page("journey.md", node)["steps"]
    assert isinstance(steps, list)
    assert all(isinstance(step, Step) for step in steps)
    told = [step.stage for step in steps]
    assert [stage for stage in Stage if stage in told] == [
        stage for stage in Stage if stage is not Stage.FAILED
    ]
    assert "hash of the key" in capsys.readouterr().out
