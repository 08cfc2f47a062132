"""The pages of the guide do what they say: their code is run against a node."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.ottla_node import KEEPS_OLD_RECORDS, OttlaNode

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide"
PAGES = re.findall(r"guide/([\w-]+\.md)", (ROOT / "mkdocs.yml").read_text())
"""In the order of a reader."""

WITH_NODES_OF_THEIR_OWN = ("testing.md", "security.md", "monitoring.md", "from-apache-kafka.md")
ON_SPARK = ("pipelines.md", "pipelines-guarantees.md", "connectors.md")
ON_STOPPED_NODES = ("damaged-disks.md",)
OF_COMMANDS = (
    "command-line.md",
    "nodes-and-partitions.md",
    "why-silent.md",
    "why-twice.md",
    "why-lost.md",
    "why-order.md",
    "why-slow.md",
)
WITH_A_REGISTRY = ("schemas.md",)
OF_CLUSTERS = ("cluster.md",)
"""`test_cluster_guide.py` runs it."""
OF_TWO_CLUSTERS = ("mirroring.md",)
"""`test_mirroring_guide.py` runs it."""
RUN_ELSEWHERE = (
    *WITH_NODES_OF_THEIR_OWN,
    *ON_SPARK,
    *ON_STOPPED_NODES,
    *WITH_A_REGISTRY,
    *OF_CLUSTERS,
    *OF_TWO_CLUSTERS,
)


def python_of(page: str) -> str:
    """Return the code of a page, all of it."""
    return "\n".join(re.findall(r"```python\n(.*?)```", (GUIDE / page).read_text(), re.DOTALL))


def test_exactly_once_page_runs_as_it_is(tmp_path: Path) -> None:
    code = python_of("exactly-once.md")
    assert "127.0.0.1:9092" in code
    with OttlaNode(tmp_path / "node") as node:
        names: dict[str, object] = {}
        exec(compile(code.replace("127.0.0.1:9092", node.bootstrap), "exactly-once.md", "exec"), names)
    assert names["copied"] == 100


def run_page(page: str, node: OttlaNode) -> dict[str, object]:
    """Run the code of a page against a node, and return the names that it has left."""
    code = python_of(page)
    assert "127.0.0.1:9092" in code
    names: dict[str, object] = {"__name__": page}
    exec(compile(code.replace("127.0.0.1:9092", node.bootstrap), page, "exec"), names)
    return names


def test_group_pages_run_as_they_are(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with OttlaNode(tmp_path / "node", settings) as node:
        owned = run_page("consumer-groups.md", node)["owned"]
        assert isinstance(owned, list)
        assert owned[0] | owned[1] == {0, 1, 2, 3}
        assert owned[0]
        assert owned[1]
        assert run_page("delivery-guarantees.md", node)["archived"] == 100


def test_consuming_page_runs_as_it_is(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with OttlaNode(tmp_path / "node", settings) as node:
        names = run_page("consuming.md", node)
    assert names["total"] == sum(number % 7 for number in range(100))
    assert names["counted"] == names["copied"] == 100
    assert names["moved"] == ["got 1", "gave up 1"]


def run_commands(page: str, node: OttlaNode) -> None:
    """Run the commands of a page, all of them in one shell."""
    blocks = re.findall(r"```sh\n(.*?)```", (GUIDE / page).read_text(), re.DOTALL)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join(blocks)],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OTTLA_BOOTSTRAP": node.bootstrap,
            "OTTLA_CONFIG": "/dev/null",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}: {done.stderr}"


@pytest.mark.thorough(guard="tests/cluster/test_guide.py::test_group_pages_run_as_they_are")
def test_all_pages_run_one_after_the_other_on_one_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader does who follows the navigation: no page is in the way of a later one."""
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "3",
        # The page on consuming writes records of 1970, and a busy machine takes long for all pages.
        **KEEPS_OLD_RECORDS,
        "ottla.journal.enable": "true",
    }
    # The page on producing writes a file to the current directory.
    monkeypatch.chdir(tmp_path)
    ran = []
    with OttlaNode(tmp_path / "node", settings) as node:
        for page in PAGES:
            if page in RUN_ELSEWHERE:
                continue
            if page in OF_COMMANDS:
                run_commands(page, node)
            else:
                run_page(page, node)
            ran.append(page)
    assert len(ran) == 16
    assert set(PAGES) == {page.name for page in GUIDE.glob("*.md")}, "the navigation has every page"


@pytest.mark.parametrize("page", PAGES)
def test_no_page_relies_on_a_hash_that_differs_in_each_process(page: str) -> None:
    assert not re.search(r"(?<![\w.])hash\(", python_of(page).replace("# Not hash()", ""))
