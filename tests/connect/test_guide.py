"""The page of the guide on connectors does what it says."""

from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_guide import python_of
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

pytest.importorskip("pyspark")


@pytest.mark.thorough(guard="tests/simulation/connect/test_worker.py")
def test_the_page_on_connectors_runs_as_it_is(
    node: OttlaNode, spark_worker: ConnectProcess, tmp_path: Path
) -> None:
    code = python_of("connectors.md")
    replaced = (
        ("127.0.0.1:9092", node.bootstrap),
        ("http://127.0.0.1:8083", spark_worker.url),
        ("tempfile.mkdtemp()", f"{str(tmp_path)!r}"),
    )
    for written, meant in replaced:
        assert written in code
        code = code.replace(written, meant)
    names: dict[str, Any] = {"__name__": "connectors.md"}
    exec(compile(code, "connectors.md", "exec"), names)
    for name in ("connect", "shop"):
        names[name].close()
