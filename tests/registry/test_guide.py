"""The page of the guide on schemas does what it says, and the reference has all routes."""

from pathlib import Path

from tests.cluster.test_guide import python_of
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.registry.reference import render_reference

ROOT = Path(__file__).parents[2]


def test_the_page_on_schemas_runs_as_it_is(node: OttlaNode, registry: RegistryProcess) -> None:
    code = python_of("schemas.md")
    for written, meant in (("127.0.0.1:9092", node.bootstrap), ("http://127.0.0.1:8081", registry.url)):
        assert written in code
        code = code.replace(written, meant)
    exec(compile(code, "schemas.md", "exec"), {"__name__": "schemas.md"})


def test_the_reference_of_routes_is_up_to_date() -> None:
    page = (ROOT / "docs/reference/registry.md").read_text()
    assert page == render_reference(), "run `make reference`"
