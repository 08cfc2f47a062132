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
