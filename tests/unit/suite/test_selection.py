"""Each room has tests of its own, and a run says which it takes."""

from pathlib import Path

import pytest
from tests.suite.plugin import describe_left_out
from tests.suite.selection import BESIDE_UNIT_TESTS, LEFT_OUT, ROOT, UnknownSelection, pytest_arguments


def rooms_of_the_source() -> list[str]:
    packages = (path for path in (ROOT / "src" / "ottla").iterdir() if (path / "__init__.py").exists())
    return sorted(path.name for path in packages)


def test_each_room_of_the_source_can_be_selected() -> None:
    assert sorted(BESIDE_UNIT_TESTS) == rooms_of_the_source()


@pytest.mark.parametrize("path", sorted({path for paths in BESIDE_UNIT_TESTS.values() for path in paths}))
def test_what_guards_a_room_exists(path: str) -> None:
    assert (ROOT / "tests" / path).exists()


@pytest.mark.parametrize("room", sorted(BESIDE_UNIT_TESTS))
def test_a_room_selects_tests_that_exist(room: str) -> None:
    paths = [Path(argument) for argument in pytest_arguments(room) if argument.startswith("tests/")]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_long_tests_and_those_with_a_live_oracle_are_run_by_all_alone() -> None:
    for what in ("", "storage", "cluster"):
        assert all(f"not {marker}" in pytest_arguments(what)[1] for marker in LEFT_OUT)
    assert pytest_arguments("all") == ["--oracle", "live", "tests"]


def test_folders_of_tests_can_be_selected_and_rooms_be_joined() -> None:
    assert pytest_arguments("cluster")[2:] == ["tests/cluster"]
    assert pytest_arguments("model,storage")[2:4] == ["tests/unit/model", "tests/unit/storage"]


def test_what_is_no_room_is_refused_with_the_rooms_that_there_are() -> None:
    with pytest.raises(UnknownSelection, match=r"WHAT=sotrage is no room .* storage"):
        pytest_arguments("sotrage")


def test_the_last_line_says_what_was_left_out_and_how_to_run_it() -> None:
    assert describe_left_out({"thorough": 3}) == "left out: 3 long; `make test WHAT=all` runs everything"
    assert describe_left_out({"live_oracle": 2, "thorough": 3}).startswith(
        "left out: 3 long and 2 with a live"
    )
