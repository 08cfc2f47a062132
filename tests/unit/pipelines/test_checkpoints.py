"""A program is compared with its checkpoint before it runs, and the answer says what is possible."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.pipelines.definition import InvalidPipeline
from ottla.pipelines.spark.checkpoints import (
    check_note,
    describe_state,
    left_over,
    make_note,
    read_query_id,
    stream_operators,
    write_note,
)
from ottla.pipelines.spark.queries import state_store

# As Spark 4.2 writes them, shortened where nothing is looked at.
TUMBLING = (
    "~Project [named_struct(start, knownnullable(precisetimestampconversion(((precisetimestampconversion("
    "ts#40-T60000ms, TimestampType, LongType) - CASE WHEN (((precisetimestampconversion(ts#40-T60000ms, "
    "TimestampType, LongType) - 0) % 60000000) < cast(0 as bigint)) THEN (((precisetimestampconversion("
    "ts#40-T60000ms, TimestampType, LongType) - 0) % 60000000) + 60000000) ELSE 0 END) - 0), LongType, "
    "TimestampType))) AS window#88-T60000ms, id#37]"
)
SESSION = (
    "~Project [named_struct(start, precisetimestampconversion(ts#129, TimestampType, LongType), end, "
    "precisetimestampconversion(cast(ts#129 + cast(30 seconds as interval) as timestamp), TimestampType, "
    "LongType)) AS session_window#190, id#126]"
)
BY_CUSTOMER = "~Aggregate [window#88-T60000ms, customer#38], [window#88-T60000ms, sum(amount#39) AS s#76]"


def test_state_is_described_without_what_changes_at_each_start() -> None:
    found = describe_state([BY_CUSTOMER, TUMBLING, "~Filter isnotnull(ts#40-T60000ms)", "~Project [id#3]"])
    assert found == ["Aggregate [window, customer], [window, sum(amount)]", "windows of 60 seconds"]
    assert found == describe_state([BY_CUSTOMER.replace("#38", "#99").replace("AS s#76", "AS t#5"), TUMBLING])
    assert describe_state([SESSION]) == ["windows of 30 seconds"]
    assert describe_state(["~Join Inner, (payment#1 = id#2)"]) == ["Join Inner, (payment = id)"]


class Plan:
    """An operator of Spark's, with what is below it."""

    def __init__(self, text: str, *below: "Plan", is_streaming: bool = True) -> None:
        self.text, self.below, self.is_streaming = text, below, is_streaming

    def children(self) -> Any:
        return SimpleNamespace(size=lambda: len(self.below), apply=lambda place: self.below[place])

    def isStreaming(self) -> bool:  # noqa: N802 - names of Spark, here and below
        return self.is_streaming

    def simpleString(self, _most: int) -> str:  # noqa: N802
        return self.text


def test_a_join_with_a_table_keeps_nothing_and_a_transformation_of_state_does() -> None:
    source, table = Plan("~Source"), Plan("Aggregate [key], [max(value)]", is_streaming=False)
    assert list(stream_operators(Plan("~Join Inner", source, table))) == ["~Source"]
    assert list(stream_operators(Plan("~Join Inner", source, source))) == [
        "~Join Inner",
        "~Source",
        "~Source",
    ]
    # Its second input is the state that it begins with.
    assert list(stream_operators(Plan("~TransformWithState f", source, table))) == [
        "~TransformWithState f",
        "~Source",
    ]


def _checkpoint(directory: Path, query_id: str = "q") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "metadata").write_text(json.dumps({"id": query_id}))
    return directory


def test_the_same_program_goes_on(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path / "p")
    note = make_note(["a", "b"], ["Deduplicate [id]"])
    check_note("p", checkpoint, note)
    write_note(checkpoint, note)
    check_note("p", checkpoint, note)
    # Spark Connect shows no plan.
    check_note("p", checkpoint, make_note(["a", "b"], None))


def test_another_key_is_refused_with_what_is_possible(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path / "p")
    write_note(checkpoint, make_note(["a"], ["Aggregate [customer], [sum(amount)]", "windows of 60 seconds"]))
    changed = make_note(["a"], ["Aggregate [city], [sum(amount)]", "windows of 60 seconds"])
    with pytest.raises(
        InvalidPipeline, match=r"made by 'Aggregate \[customer\].*now has 'Aggregate \[city\]"
    ):
        check_note("p", checkpoint, changed)
    with pytest.raises(InvalidPipeline, match=r"now has 'nothing'.*give the pipeline another name"):
        check_note("p", checkpoint, make_note(["a"], ["Aggregate [customer], [sum(amount)]"]))
    with pytest.raises(InvalidPipeline, match="made by 'nothing'"):
        check_note(
            "p",
            checkpoint,
            make_note(["a"], [*json.loads((checkpoint / "ottla-program.json").read_text())["state"], "Join"]),
        )


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path / "p")
    write_note(checkpoint, make_note(["a", "b"], []))
    with pytest.raises(InvalidPipeline, match="reads b, a and its checkpoint belongs to a, b"):
        check_note("p", checkpoint, make_note(["b", "a"], []))


def test_a_note_without_its_checkpoint_says_nothing(tmp_path: Path) -> None:
    write_note(tmp_path / "p", make_note(["a"], []))
    check_note("p", tmp_path / "p", make_note(["b"], []))
    assert read_query_id(tmp_path / "p") is None
    (tmp_path / "p" / "metadata").write_text("torn")
    assert read_query_id(tmp_path / "p") is None


def test_pipelines_that_a_program_no_longer_has_are_named(tmp_path: Path) -> None:
    for name in ("kept", "gone"):
        _checkpoint(tmp_path / name)
    (tmp_path / "no-checkpoint").mkdir()
    assert left_over(tmp_path, ["kept"]) == ["gone"]


def test_a_query_that_transforms_state_gets_rocksdb_and_others_do_not() -> None:
    conf: dict[str, str] = {}
    settings = SimpleNamespace(get=conf.get, set=conf.__setitem__, unset=conf.__delitem__)
    spark: Any = SimpleNamespace(conf=settings)
    for state, stores in (
        (["TransformWithStateInPySpark f(id, value)"], ["RocksDBStateStoreProvider"]),
        (["Aggregate [id], [id, count(1)]"], []),
        (None, []),
    ):
        with state_store(spark, state):
            assert [name.rpartition(".")[2] for name in conf.values()] == stores
        assert conf == {}
    # What the user has chosen stays.
    (name,) = ("spark.sql.streaming.stateStore.providerClass",)
    conf[name] = "own"
    with state_store(spark, ["TransformWithState"]):
        assert conf == {name: "own"}
    assert conf == {name: "own"}
