"""What was recorded of Apache Kafka answers the same questions, and no others."""

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tests.java import oracle
from tests.java.oracle import Recorder, Recording, Text

NUMBERS = Text(str, int)


def recorded() -> Recorder:
    recorder = Recorder()
    recorder.answer("one", lambda: "1")
    recorder.answer("two", lambda: "2")
    return recorder


def never() -> str:
    raise AssertionError("nobody is asked")


def test_the_same_questions_get_the_same_answers() -> None:
    recording = Recording(recorded().lines)
    assert [recording.answer("one", never), recording.answer("two", never)] == ["1", "2"]


@pytest.mark.parametrize(
    ("before", "question"), [((), "two"), (("one",), "three"), (("one",), "one"), (("one", "two"), "two")]
)
def test_other_questions_fail_and_say_what_to_do(before: tuple[str, ...], question: str) -> None:
    recording = Recording(recorded().lines)
    for one in before:
        recording.answer(one, never)
    with pytest.raises(pytest.fail.Exception, match=r"question \d is another one(.|\n)*`make golden`"):
        recording.answer(question, never)


def test_a_place_has_another_name_each_time(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.answer(f"{tmp_path}/a", lambda: f"no {tmp_path}/b", tmp_path)
    assert Recording(recorder.lines).answer("/here/a", never, Path("/here")) == "no /here/b"


def test_examples_are_those_that_were_recorded() -> None:
    recorder = Recorder()
    drawn = recorder.examples(st.integers(0, 1000), 5, NUMBERS)
    assert len(drawn) == 5
    assert Recording(recorder.lines).examples(st.integers(-9, -1), 1, NUMBERS) == drawn
    with pytest.raises(pytest.fail.Exception, match="there are no examples"):
        Recording([]).examples(st.integers(), 1, NUMBERS)


def test_recordings_are_kept_by_module_and_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "ANSWERS", tmp_path / "answers")
    answers = {"test_a": recorded().lines, "test_b[1]": [], "test_c": [f"0000 {json.dumps('é = = ?')}"]}
    oracle.write_answers("tests/room/test_module.py", answers)
    assert oracle.read_answers("tests/room/test_module.py") == answers
    assert oracle.read_answers("tests/room/test_other.py") == {}
    with pytest.raises(pytest.fail.Exception, match="there is nothing for this test"):
        oracle.recording("tests/room/test_other.py", "test_a")
