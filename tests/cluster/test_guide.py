"""The pages of the guide do what they say: their code is run against a node."""

import re
from pathlib import Path

from tests.ottla_node import OttlaNode

GUIDE = Path(__file__).parents[2] / "docs/guide"


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
