"""Which lines of a log count as complaints."""

import pytest
from tests.java.complaints import AFTER_A_KILL, ERRORS, complaints


@pytest.mark.parametrize(
    "line",
    [
        "ERROR Exceptionally slow controller event createTopics took 2010 ms. (o.a.k.controller)",
        "ERROR Request timed out while it waited (o.a.k.server)",
        "INFO Deleted log /data/t-0.abc-delete/0.log, truncated before",
        "INFO all is well",
    ],
)
def test_slowness_is_no_complaint(line: str) -> None:
    assert complaints(f"INFO before\n{line}\nINFO after") == []


@pytest.mark.parametrize(
    "line", ["ERROR Failed to load log /data/t-0", "WARN Found stray log t-0", "WARN Corrupt index found"]
)
def test_what_is_wrong_is_a_complaint(line: str) -> None:
    assert complaints(f"INFO before\n{line}") == [line]


def test_what_a_kill_leaves_is_no_complaint_after_it() -> None:
    line = "ERROR Could not find offset index file corresponding to log file /data/t-0/0.log"
    assert (complaints(line, AFTER_A_KILL), complaints(line, ERRORS)) == ([], [line])
