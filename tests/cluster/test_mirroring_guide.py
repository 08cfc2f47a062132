"""The guide to mirroring, command by command, between two nodes. Its metrics and access rules, too."""

import re
import shlex
import urllib.request
from pathlib import Path

import pytest
from tests.cli.typing import run, succeed
from tests.clients.served_topics import make_topic
from tests.cluster.mirrored import are_equal, rows_of, until
from tests.support.mirror_process import MirrorProcess
from tests.support.ottla_node import OttlaNode

from ottla.client.consumer import TopicPartition
from ottla.testing.ports import free_port

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "mirroring.md"
PAYMENTS = TopicPartition("payments", 0)


def blocks(kind: str, source: OttlaNode, target: OttlaNode) -> list[str]:
    """Return what the page has of a kind, with the addresses of the nodes."""
    text = PAGE.read_text().replace("127.0.0.1:9092", target.bootstrap)
    return re.findall(
        rf"```{kind}\n(.*?)```", text.replace("kafka.example:9092", source.bootstrap), re.DOTALL
    )


def test_the_page_runs_as_it_is(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "source") as source, OttlaNode(tmp_path / "target") as target:
        exact, status, failover, in_its_way = (
            shlex.split(block)[1:] for block in blocks("sh", source, target)
        )
        make_topic(source.bootstrap, "payments")
        succeed("produce", "payments", stdin="one\ntwo\n", bootstrap=source.bootstrap)
        with MirrorProcess.of_command(tmp_path, *exact):
            until(lambda: are_equal(source.bootstrap, target.bootstrap, PAYMENTS))
            # At first it is not known how far the copy is behind, and the command says so.
            until(lambda: "payments" in (told := run(*status)).out and told.code == 0)
            assert "berlin" in succeed(*status).out
        assert "1 partitions are writable" in succeed(*failover).out

        (properties,) = blocks("properties", source, target)
        file = tmp_path / "mm2.properties"
        file.write_text(properties)
        place = in_its_way.index("mm2.properties")
        with MirrorProcess.of_command(tmp_path, *in_its_way[:place], str(file)):
            until(
                lambda: [row[1] for row in rows_of(target.bootstrap, "berlin.payments")] == [b"one", b"two"]
            )


def test_rules_for_reading_and_new_topics_follow_and_metrics_tell(tmp_path: Path) -> None:
    guarded = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    metrics_port = free_port()
    with (
        OttlaNode(tmp_path / "source", guarded) as source,
        OttlaNode(tmp_path / "target", guarded) as target,
    ):
        make_topic(source.bootstrap, "payments")
        for right in ("read", "write"):
            succeed("acl", "add", "User:bob", right, "topic:payments", bootstrap=source.bootstrap)
        more = ("--source-name", "A", "--metrics-port", str(metrics_port))
        with MirrorProcess(tmp_path, source.bootstrap, target.bootstrap, *more):
            until(lambda: _rights(target) == ["READ"])
            make_topic(source.bootstrap, "orders")
            succeed("produce", "orders", stdin="one\n", bootstrap=source.bootstrap)
            until(lambda: are_equal(source.bootstrap, target.bootstrap, TopicPartition("orders", 0)))
            succeed("acl", "remove", "User:bob", "read", "topic:payments", bootstrap=source.bootstrap)
            until(lambda: _rights(target) == [])
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
                lines = answer.read().decode().splitlines()
            assert 'ottla_mirror_lag{source="A",topic="orders",partition="0"} 0' in lines
            assert 'ottla_mirror_up{source="A"} 1' in lines


def _rights(node: OttlaNode) -> list[str]:
    rules = succeed("acl", "list", "--json", bootstrap=node.bootstrap).data
    return sorted(rule["operation"].upper() for rule in rules if rule["principal"] == "User:bob")


@pytest.fixture(autouse=True)
def _no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page say themselves which cluster they mean."""
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
