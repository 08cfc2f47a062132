"""The payments demo: its feeder and its reader by themselves, and all of it to the reckoning."""

import importlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.records import committed_json, create_topic, produce_json
from tests.support.ottla_node import OttlaNode

from ottla import TopicPartition, sync
from ottla.pipelines.link import Link

EXAMPLE = Path(__file__).parents[2] / "examples" / "payments"


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("demo")


def test_feeder_sends_what_it_remembers(node: OttlaNode, demo: Any) -> None:
    create_topic(node.bootstrap, "demo-payments", 2)
    feeder = demo.Feeder(node.bootstrap, 2000, "demo-payments")
    feeder.start()
    while len(feeder.sent) < 100 and feeder.is_alive():
        time.sleep(0.01)
    feeder.stopping.set()
    feeder.join()

    assert feeder.error is None
    sent = sorted(payment.id for payment in feeder.sent)
    assert len(sent) >= 100
    assert sorted(row["id"] for row in committed_json(node.bootstrap, "demo-payments")) == sent


def test_reader_gives_each_row_once(node: OttlaNode, demo: Any) -> None:
    create_topic(node.bootstrap, "demo-rows", 2)
    reader = demo.Reader(node.bootstrap, "demo-rows")
    assert reader.read_new() == []
    for number in range(3):
        produce_json(node.bootstrap, "demo-rows", [{"number": number, "row": row} for row in range(5)], "row")
        found = sorted((row["number"], row["row"]) for row in reader.read_new())
        assert found == [(number, row) for row in range(5)]
    reader.close()


def test_lag_is_what_the_group_has_not_read(
    node: OttlaNode, link: Link, demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(demo.INPUTS, "demo-group", "demo-lag")
    create_topic(node.bootstrap, "demo-lag", 2)
    produce_json(node.bootstrap, "demo-lag", [{"row": row} for row in range(20)], "row")
    admin = sync.Admin(node.bootstrap)
    assert demo.lag_of(admin, "demo-group") == 20
    read = {TopicPartition("demo-lag", 0): 3}
    link.run(link.group_offsets.alter("demo-group", read)).check()
    assert demo.lag_of(admin, "demo-group") == 17
    admin.close()


@pytest.mark.timeout(900)
@pytest.mark.thorough(guard="tests/unit/pipelines/test_demo_verdicts.py")
def test_demo_comes_to_a_reckoning_that_is_right() -> None:
    pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--seconds", "5", "--rate", "500"],
        capture_output=True, text=True, check=False, timeout=800,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("  right  ") == 4
    assert "WRONG" not in done.stdout
