"""Pipelines as data: no Spark is needed to declare, to look at, or to load one."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import (
    InvalidPipeline,
    TopicInput,
    foreach_batch,
    pipeline,
    spark_sink,
    table,
    topic,
)
from ottla.pipelines.definition import building
from ottla.pipelines.loading import load_pipelines

SCHEMA = "customer string, amount double"


def declare(**more: Any) -> Any:
    @pipeline("spend", **{"to": "totals", **more})
    def spend(
        orders: Any = topic("orders", schema=SCHEMA), who: Any = table("customers", schema=SCHEMA)
    ) -> Any:
        return (orders, who)

    return spend


def test_declaring_needs_no_spark() -> None:
    script = "import sys; import ottla.pipelines; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_definition_says_all_there_is_to_say() -> None:
    definition = declare(mode="update", key="customer", trigger="10 seconds")

    assert definition.inputs == {
        "orders": TopicInput("orders", "json", SCHEMA),
        "who": TopicInput("customers", "json", SCHEMA, is_table=True),
    }
    assert (definition.name, definition.to, definition.mode) == ("spend", ("totals",), "update")
    assert (definition.key, definition.trigger) == (("customer",), "10 seconds")
    assert definition.is_exactly_once
    assert definition.dead_letters == "spend.dead_letters"
    assert declare(dead_letters=False).dead_letters is None
    assert declare(dead_letters="bad").dead_letters == "bad"


def test_definition_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        declare().name = "other"
    with pytest.raises(TypeError):
        declare().inputs["orders"] = None


def test_function_can_be_called_with_any_frames() -> None:
    assert declare()("a frame", who="another") == ("a frame", "another")


def test_each_output_has_a_query_of_its_own() -> None:
    assert declare().queries == ("spend",)
    assert declare(to=("good", "bad")).queries == ("spend.good", "spend.bad")


def test_outputs_may_be_sinks_of_spark_and_functions() -> None:
    def take(_batch: Any, _batch_id: int) -> None:
        pass

    files = spark_sink("parquet", options={"path": "/tmp/x"}, name="files")
    assert declare(to=files).to == (files,)
    assert declare(to=files).queries == ("spend",)
    assert declare(to=(files, "good", foreach_batch(take))).queries == (
        "spend.files",
        "spend.good",
        "spend.batches",
    )
    with pytest.raises(TypeError):
        files.options["path"] = "elsewhere"  # type: ignore[index]


def test_names_of_the_package_are_not_hidden_by_its_parts() -> None:
    script = (
        "import ottla.pipelines.sink.ledger, ottla.pipelines.source.plan, ottla.pipelines.columns\n"
        "import ottla.pipelines as p; import types\n"
        "assert not [n for n in p.__all__ if isinstance(getattr(p, n), types.ModuleType)]"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_topic_without_schema_is_text() -> None:
    assert topic("notes") == TopicInput("notes", "string", asks_registry=True)
    assert topic("notes", format="bytes").format == "bytes"


def test_topic_inside_the_function_is_read_at_once() -> None:
    class Reader:
        def read(self, declared: TopicInput) -> Any:
            return f"frame of {declared.topic}"

    token = building.set(Reader())
    try:
        assert topic("orders") == "frame of orders"
    finally:
        building.reset(token)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "upsert"}, "use one of append, update, complete"),
        ({"to": ()}, "has no output"),
        ({"to": "no spaces"}, "no spaces"),
        ({"to": print}, "cannot write to"),
        ({"to": ("x", spark_sink("console", name="x"))}, "two outputs named 'x'"),
    ],
)
def test_pipeline_that_cannot_be_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPipeline, match=message):
        declare(**more)


def test_json_without_schema_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="JSON without a schema"):
        topic("orders", format="json")


def test_parameter_that_is_no_input_is_refused() -> None:
    with pytest.raises(InvalidPipeline, match="parameter 'orders' of spend is not an input"):

        @pipeline("spend", to="totals")
        def spend(orders: Any) -> Any:
            return orders


def test_file_is_loaded_with_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "schemas_of_test.py").write_text("ORDERS = 'a int'")
    (tmp_path / "jobs.py").write_text(
        "from ottla.pipelines import pipeline, topic\n"
        "from schemas_of_test import ORDERS\n"
        "@pipeline('one', to='x')\n"
        "def one(a=topic('a', schema=ORDERS)): return a\n"
        "@pipeline('two', to='y')\n"
        "def two(a=topic('a')): return a\n"
    )
    assert [item.name for item in load_pipelines(tmp_path / "jobs.py")] == ["one", "two"]


def test_file_without_pipelines_and_file_with_one_name_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("x = 1")
    with pytest.raises(InvalidPipeline, match="declares no pipeline"):
        load_pipelines(tmp_path / "none.py")
    line = "@pipeline('one', to='x')\ndef {}(a=topic('a')): return a\n"
    (tmp_path / "twice.py").write_text(
        "from ottla.pipelines import pipeline, topic\n" + line.format("f") + line.format("g")
    )
    with pytest.raises(InvalidPipeline, match="'one' twice"):
        load_pipelines(tmp_path / "twice.py")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = 1\nimport nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("x = 1\ndef (", "SyntaxError: invalid syntax"),
    ],
)
def test_file_that_cannot_be_loaded_is_named_with_the_line(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(InvalidPipeline) as refused:
        load_pipelines(path)
    assert str(refused.value).startswith(f"cannot load {path}: {what}")
    assert str(refused.value).endswith(f"({path}, line 2)")


def test_file_whose_imports_fail_is_named_with_the_place_of_the_failure(tmp_path: Path) -> None:
    (tmp_path / "beside_broken.py").write_text("1 / 0")
    (tmp_path / "job.py").write_text("import beside_broken")
    with pytest.raises(InvalidPipeline, match=r"ZeroDivisionError: .* \(.*beside_broken.py, line 1\)"):
        load_pipelines(tmp_path / "job.py")
