"""`make mutants` plants what it says, tells which tests notice it, and keeps the source as it is."""

import ast
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.mutants import faults, judging, line_map, planting
from tests.mutants.__main__ import JUDGED, judgements, score, table
from tests.mutants.faults import Fault, Site, Sites, chosen, named
from tests.mutants.judging import Result, Verdict, judge_in_turn
from tests.mutants.line_map import Cost, LineMap
from tests.mutants.sessions import Outcome, now, stop_after

SOURCE = '''
LIMIT = 10

def positives(values, *, most=LIMIT):
    """Return some."""
    found = []
    for value in values:
        if value <= 0:
            continue
        found.append(value + 1)
        if len(found) == most and found:
            break
    return found

class Box:
    def __init__(self, left, right):
        self.left = left
        self.right = right

    def swap(self):
        self.left, self.right = self.right, self.left
        return Box(self.left, self.right)

    def __repr__(self):
        return str(1 + 1)
'''


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one module, in the place of the source of Ottla."""
    for module in (faults, planting, line_map):
        monkeypatch.setattr(module, "SOURCE", tmp_path)
    for module in (planting, line_map):
        monkeypatch.setattr(module, "CACHE", tmp_path / "target")
    (tmp_path / "boxes.py").write_text(SOURCE)
    return tmp_path


def _sites() -> list[Site]:
    return Sites(ast.parse(SOURCE)).found


def _change(kind: str, before: str) -> Site:
    return next(site for site in _sites() if (site.kind, site.before) == (kind, before))


def test_each_kind_of_fault_is_found_once_for_each_place() -> None:
    found = [
        (site.function, site.kind, site.before, site.after) for site in _sites() if site.kind != "constant"
    ]

    assert found == [
        ("positives", "condition", "value <= 0", "not value <= 0"),
        ("positives", "comparison", "value <= 0", "value < 0"),
        ("positives", "removed continue", "continue", ""),
        ("positives", "removed call", "found.append(value + 1)", ""),
        ("positives", "arithmetic", "value + 1", "value - 1"),
        ("positives", "condition", "len(found) == most and found", "not (len(found) == most and found)"),
        ("positives", "boolean", "len(found) == most and found", "len(found) == most or found"),
        ("positives", "comparison", "len(found) == most", "len(found) != most"),
        ("positives", "removed break", "break", ""),
        ("Box.swap", "arguments", "Box(self.left, self.right)", "Box(self.right, self.left)"),
    ]


def test_a_planted_fault_holds_only_while_its_switch_is_turned(tree: Path) -> None:
    planted = list(chosen(["boxes.py"], "1"))
    switch = planting.Switch()
    module: dict[str, Any] = {"__planted__": switch}
    exec(planting.planted(SOURCE.encode(), "boxes.py", "boxes.py", planted), module)
    positives = module["positives"]

    as_it_is = positives([1, -1, 0, 2])
    by_fault = {}
    for fault in planted:
        switch.active, switch.reached = fault.name, False
        if not fault.at_import and fault.function == "positives":
            by_fault[fault.kind] = positives([1, -1, 0, 2]), switch.reached

    assert as_it_is == [2, 3]
    assert by_fault.pop("removed continue", ([2, 0, 1, 3], True)) == ([2, 0, 1, 3], True)
    assert by_fault, "some faults are in this function"
    assert all(reached for kind, (_, reached) in by_fault.items() if kind != "removed break")


@pytest.mark.parametrize("number", range(len(_sites())))
def test_every_fault_compiles_and_changes_the_program(number: int, tree: Path) -> None:
    sites = _sites()
    fault = named("boxes.py", sites, sites[number])

    planting.planted(SOURCE.encode(), "boxes.py", "boxes.py", [fault])

    assert fault.before != fault.after


def test_the_same_seed_chooses_the_same_faults(tree: Path) -> None:
    first, again, other = (list(chosen(["boxes.py"], seed)) for seed in ("1", "1", "2"))

    assert first == again
    assert first != other
    assert len({(fault.line, fault.function) for fault in first}) == len(first), "each statement once"


def test_a_fault_keeps_its_name_when_lines_are_added_above_it(tree: Path) -> None:
    before = {fault.name: fault.line for fault in chosen(["boxes.py"], "1")}
    (tree / "boxes.py").write_text("import sys\n\n" + SOURCE)

    after = {fault.name: fault.line for fault in chosen(["boxes.py"], "1")}

    assert after == {name: line + 2 for name, line in before.items()}


def test_faults_are_kept_to_lines_that_changed(tree: Path) -> None:
    found = list(chosen(["boxes.py"], "1", {"boxes.py": {10}}))

    assert [(fault.line, fault.function) for fault in found] == [(10, "positives")]


def test_probes_tell_each_statement_that_is_executed(tree: Path) -> None:
    code, count = planting.probed(SOURCE.encode(), "boxes.py")
    hits = bytearray(count)
    module: dict[str, object] = {"__hits__": hits}
    exec(code, module)
    positives = module["positives"]
    assert callable(positives)
    assert positives.__doc__ == "Return some."

    positives([-1])

    executed = [
        statement.lineno
        for (_, _, statement), hit in zip(planting.statements_of(ast.parse(SOURCE)), hits, strict=True)
        if hit
    ]
    assert executed == [6, 7, 8, 9, 13]


def test_the_map_knows_who_executes_a_line_after_lines_moved_and_functions_changed(tree: Path) -> None:
    kept = tree / "target" / "sources"
    kept.mkdir(parents=True)
    (kept / "old").write_text(SOURCE)
    numbers = {
        statement.lineno: number
        for number, (_, _, statement) in enumerate(planting.statements_of(ast.parse(SOURCE)))
    }
    line_map_of_one = LineMap([])
    line_map_of_one.costs["test_a"] = Cost(0.1, 0.1)
    mask = sum(1 << numbers[line] for line in (6, 7, 8, 9, 13))
    line_map_of_one.entries.append(
        {"sources": {"boxes.py": "old"}, "tests": {"test_a": (0.1, 0.1, {"boxes.py": f"{mask:x}"})}}
    )
    moved = "import sys\n" + SOURCE
    (tree / "boxes.py").write_text(moved)

    by_line = {
        fault.line: line_map_of_one.executing(fault)
        for seed in range(20)
        for fault in chosen(["boxes.py"], str(seed))
        if not fault.at_import
    }

    assert by_line[9] == by_line[10] == ["test_a"]
    assert by_line[11] == by_line[12] == by_line[13] == by_line[23] == []


def test_what_is_judged_or_noticed_makes_the_score() -> None:
    counts = Counter({"killed": 7, "timed out": 2, "survived": 1, "judged": 5})

    assert score(counts) == "90%"
    assert score(counts + Counter({"undecided": 10})) == "45%"
    assert score(Counter({"judged": 1})) == "-"
    with_nodes = counts + Counter({"with a node": 10})
    assert (score(with_nodes), score(with_nodes, quick=True)) == ("95%", "45%")
    assert table([("wire", "killed"), ("model", "survived")]).splitlines()[-1].startswith("all ")


def _ask_in_turn(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault], *verdicts: dict[str, Verdict]
) -> dict[str, tuple[str, int]]:
    """Judge faults by maps whose tests are known to give these verdicts, and return what is heard."""
    asked = iter(verdicts)

    def judge(left: list[Fault], _map: LineMap, *, heard: Any, **_more: Any) -> None:
        known = next(asked)
        assert {fault.name for fault in left} == set(known)
        for fault in left:
            heard(Result(fault, known[fault.name], ran=len(known)))

    monkeypatch.setattr(judging, "judge", judge)
    found: dict[str, tuple[str, int]] = {}
    maps = [lambda: LineMap([])] * len(verdicts)
    judge_in_turn(
        faults,
        maps,
        budget_s=1,
        jobs=1,
        heard=lambda result: found.update({result.fault.name: (result.verdict, result.ran)}),
    )
    return found


def test_tests_beside_a_node_are_asked_only_about_what_quick_ones_let_pass(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [
        replace(fault, name=name) for fault, name in zip(chosen(["boxes.py"], "1"), "abcdef", strict=False)
    ]
    heard = _ask_in_turn(
        monkeypatch,
        faults,
        {
            "a": "killed",
            "b": "timed out",
            "c": "survived",
            "d": "not executed",
            "e": "not executed",
            "f": "undecided",
        },
        {"c": "killed", "d": "survived", "e": "not executed", "f": "not executed"},
    )
    # Of two rounds that did not notice a fault, the first one is told, unless it had no test to ask.
    assert heard == {
        "a": ("killed", 6),
        "b": ("timed out", 6),
        "c": ("with a node", 4),
        "d": ("survived", 4),
        "e": ("not executed", 6),
        "f": ("undecided", 6),
    }


def test_a_test_that_fails_without_the_fault_as_well_decides_nothing(tree: Path) -> None:
    fault = next(chosen(["boxes.py"], "1"))
    for end, verdict in (
        ("failed 0 too busy", "undecided"),
        ("stopped 0", "undecided"),
        ("reached", "killed"),
        ("unreached", "killed"),
    ):
        court = judging._Court([(fault, ["test_a"], 1)])
        assert court.hear(next(court), "failed 0 AssertionError") is None
        control = next(court)
        assert control.active == "", "the same test, without the fault"
        result = court.hear(control, end)
        assert result is not None
        assert result.verdict == verdict


def test_when_the_time_is_over_what_is_left_is_undecided(tree: Path) -> None:
    faults = list(chosen(["boxes.py"], "1"))
    court = judging._Court([(fault, ["test_a"], 1) for fault in faults], until=now() - 1)
    assert next(court, None) is None
    left = list(court.unheard())
    assert {result.verdict for result in left} == {"undecided"}
    assert len(left) == len(faults)
    in_time = judging._Court([(faults[0], ["test_a"], 1)], until=now() + 1_000)
    assert next(in_time).fault == faults[0]


def test_what_no_known_test_executes_is_undecided_while_not_all_tests_are_known(tree: Path) -> None:
    fault = next(chosen(["boxes.py"], "1"))
    for is_whole, verdict in ((True, "not executed"), (False, "undecided")):
        heard: list[Result] = []
        known = LineMap([], is_whole=is_whole)
        judging.judge([fault], known, budget_s=1, jobs=1, heard=heard.append)
        assert [result.verdict for result in heard] == [verdict]


def test_a_test_that_waits_for_ever_is_stopped() -> None:
    stop_after(0, 0.01)
    try:
        with pytest.raises(pytest.skip.Exception, match="takes too long"):
            threading.Event().wait()
    finally:
        stop_after(0, 0)


def test_each_judged_fault_has_a_reason_and_a_module_that_is_there() -> None:
    for judgement in judgements(JUDGED).values():
        assert judgement.reason
        assert (Path("src/ottla") / judgement.file).exists(), f"{judgement.name} is judged in no module"


def test_what_is_data_is_asked_of_golden_tests_first(tree: Path) -> None:
    fault = replace(next(chosen(["boxes.py"], "1")), file="wire/error_code.py", function="", at_import=True)
    known = LineMap([])
    executes = {"wire/error_code.py": "1"}
    tests: dict[str, dict[str, str]] = {f"tests/unit/wire/test_{n}.py::test": executes for n in range(20)}
    tests["tests/golden/test_error_codes.py::test"] = {}
    tests["tests/unit/wire/test_other.py::test"] = {}
    for test, hits in tests.items():
        known.costs[test] = Cost(0.1, 0.1)
        known.entries.append({"sources": {}, "tests": {test: (0.1, 0.1, hits)}})

    picked, executing = judging.tests_for(fault, known, budget_s=5.0)

    assert picked[0] == "tests/golden/test_error_codes.py::test"
    assert len(picked) == 9
    assert executing == 21


def test_files_whose_tests_are_all_left_out_are_known_afterwards(tree: Path) -> None:
    test_file = "tests/mutants/test_mutants.py"
    assert not line_map.tests_are_known(test_file)
    line_map._note_all([test_file], {}, planting.Modules(), Outcome())
    assert line_map.tests_are_known(test_file)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    for content in (b"one", b"two"):
        planting.write_whole(path, content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
