"""The picture of a story has a lane for each actor, and on it each step with its time and its words."""

import re

from tests.support.made_up_evidence import T0, record

from ottla.explain.picture import _lines, draw
from ottla.explain.steps import Step
from ottla.explain.trace import Story

STEPS = (
    Step(0, "produced", "by <till>", "the log", "till"),
    Step(1_500, "appended", "in a batch", "the log", "log"),
    Step(None, "visible", "at no known time", "the log", "log"),
    Step(2_000, "delivered", "to reader", "the journal", "group"),
    Step(
        1_900, "again", "to another reader of the same group, because of a rebalance", "the journal", "group"
    ),
)


def drawn(*steps: Step) -> str:
    return draw(Story(record(T0, 5, b"k", 0), steps, ()))


def lanes(picture: str) -> dict[str, int]:
    """Return where the lane of each actor is."""
    found = re.findall(r'<text class="name" x="(\d+)" y="62">([^<]*)</text>', picture)
    return {name: int(x) for x, name in found}


def test_the_producer_is_on_the_left_the_log_beside_it_and_readers_follow() -> None:
    picture = drawn(*STEPS)
    assert lanes(picture) == {"till": 325, "log": 535, "group": 745}
    assert 'viewBox="0 0 880 376"' in picture
    assert "<title>The story of t/0@5</title>" in picture
    assert picture.startswith("<svg ")
    assert picture.endswith("</svg>\n")
    # A story that begins in the log has it on the left.
    assert list(lanes(drawn(STEPS[1], STEPS[3]))) == ["log", "group"]


def test_each_step_with_a_time_has_its_dot_its_words_and_the_wait_before_it() -> None:
    picture = drawn(*STEPS)
    assert re.findall(r'<circle class="(\w+)" cx="(\d+)" cy="(\d+)"', picture) == [
        ("dot", "325", "90"),
        ("dot", "535", "154"),
        ("dot", "745", "218"),
        ("again", "745", "282"),
    ]
    assert "at no known time" not in picture
    times = re.findall(r'class="time" x="30" y="\d+">([^<]*)<', picture)
    assert [text[-13:] for text in times] == [
        "00:00:00.000Z",
        "00:00:01.500Z",
        "00:00:02.000Z",
        "00:00:01.900Z",
    ]
    waits = re.findall(r'class="wait" x="30" y="(\d+)">([^<]*)<', picture)
    # Clocks that differ make no wait shorter than nothing.
    assert waits == [("126", "+1.5 s"), ("190", "+500 ms"), ("254", "+0 ms")]
    assert '<text x="335" y="106">produced: by &lt;till&gt;</text>' in picture
    assert '<text x="755" y="298">again: to another reader of the</text>' in picture
    assert '<text x="755" y="311">same group, because of a</text>' in picture


def test_arrows_lead_from_the_producer_to_the_log_and_from_there_to_readers() -> None:
    arrows = re.findall(r'class="arrow" d="M(\d+) (\d+) L(\d+) \d+"', drawn(*STEPS))
    assert arrows == [("325", "154", "528"), ("535", "218", "738"), ("535", "282", "738")]
    assert "arrow" not in re.sub(r"<style>.*</style>", "", drawn(STEPS[1]), flags=re.DOTALL)
    assert 'class="arrow"' not in drawn(STEPS[3]), "without a log nobody knows where it came from"


def test_words_take_three_lines_at_most() -> None:
    assert _lines("short") == ["short"]
    assert _lines("a" * 40 + " b") == ["a" * 40, "b"]
    assert _lines("x" * 29 + " y z") == ["x" * 29 + " y", "z"]
    assert _lines(" ".join(["w" * 30] * 3)) == ["w" * 30] * 3
    assert _lines(" ".join(["w" * 30] * 4)) == ["w" * 30, "w" * 30, "w" * 30 + " ..."]
