"""What Apache Kafka answers to the questions of a test: recorded once, or asked of Kafka's own classes.

`pytest --oracle recorded`, the default, needs no Java: the answers lie in `tests/golden/answers`, a file for
each module of tests. `--oracle live` asks Apache Kafka itself. `--oracle record` (`make golden`) does so as
well, and writes its answers down.

A recording is a text, compressed. It has a line `= NAME` for each test, and after it, in order, the examples
that the test was made of (`? TEXT`) and the answers to its questions (`MARK ANSWER`). A mark is what is left
of a hash over everything that the test has asked so far. So a test that asks something else than it did when
it was recorded, or in another order, fails and says how it can be recorded anew.
"""

import hashlib
import lzma
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, NoReturn, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from tests.java.host import ask_java

T = TypeVar("T")

TESTS: Final = Path(__file__).parent.parent
ANSWERS: Final = TESTS / "golden" / "answers"
RECORDED, LIVE, RECORD = MODES = ("recorded", "live", "record")
_MARK_DIGITS = 4
_EXAMPLE = "?"
_LARGE_EXAMPLE = 3000
_PLACE = "<place>"


class Text(NamedTuple, Generic[T]):
    """How the examples of a test are written down, and read again."""

    write: Callable[[T], str]
    read: Callable[[str], T]


class Oracle:
    """Whoever answers the questions of one test: Apache Kafka."""

    def ask(self, program: str, question: str, place: Path | None = None) -> str:
        """Have Kafka's classes answer. `place` is a directory that has another name each time."""
        return self.answer(f"{program}\t{question}", lambda: ask_java(program, question), place)

    def answer(self, question: str, ask: Callable[[], str], place: Path | None = None) -> str:
        """Have Apache Kafka answer, in the way that `ask` does."""
        del question, place
        return ask()

    def examples(self, strategy: SearchStrategy[T], count: int, text: Text[T]) -> Sequence[T]:
        """Return examples to ask about."""
        del text
        return _drawn(strategy, count)


class Recorder(Oracle):
    """Keeps what was asked and answered."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._asked = _Marks()

    def answer(self, question: str, ask: Callable[[], str], place: Path | None = None) -> str:
        mark = self._asked.mark(_without(place, question))
        answer = ask()
        self.lines.append(f"{mark} {_without(place, answer)}")
        return answer

    def examples(self, strategy: SearchStrategy[T], count: int, text: Text[T]) -> Sequence[T]:
        # Large ones say little more than small ones, and nobody wants to keep them.
        drawn = super().examples(strategy, 3 * count, text)
        small = [one for one in drawn if len(text.write(one)) <= _LARGE_EXAMPLE]
        found = [*small[:1], *small[-(count - 1) :]]
        self.lines += [f"{_EXAMPLE} {text.write(one)}" for one in found]
        return found


class Recording(Oracle):
    """Answers what was answered when it was recorded."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._examples = [line[2:] for line in lines if line.startswith(_EXAMPLE)]
        self._answers = [line for line in lines if not line.startswith(_EXAMPLE)]
        self._asked = _Marks()
        self._at = 0

    def answer(self, question: str, ask: Callable[[], str], place: Path | None = None) -> str:
        del ask
        expected = self._asked.mark(_without(place, question))
        line = self._answers[self._at] if self._at < len(self._answers) else ""
        mark, _, answer = line.partition(" ")
        self._at += 1
        if mark != expected:
            _not_recorded(f"question {self._at} is another one: {question[:1000]}")
        return answer if place is None else answer.replace(_PLACE, str(place))

    def examples(self, strategy: SearchStrategy[T], count: int, text: Text[T]) -> Sequence[T]:
        del strategy, count
        if not self._examples:
            _not_recorded("there are no examples")
        return [text.read(one) for one in self._examples]


class _Marks:
    """Remembers what was asked so far."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def mark(self, question: str) -> str:
        self._hash.update(f"{question}\n".encode())
        return self._hash.hexdigest()[:_MARK_DIGITS]


def read_answers(module: str) -> dict[str, list[str]]:
    """Return the lines of each test of a module."""
    path = path_of(module)
    if not path.exists():
        return {}
    found: dict[str, list[str]] = {}
    for part in lzma.decompress(path.read_bytes()).decode().split("\n= ")[1:]:
        name, *lines = part.split("\n")
        found[name] = lines
    return found


def write_answers(module: str, answers: dict[str, list[str]]) -> None:
    """Write down what the tests of a module asked."""
    parts = ["\n".join([name, *lines]) for name, lines in sorted(answers.items())]
    text = "".join(f"\n= {part}" for part in parts)
    ANSWERS.mkdir(exist_ok=True)
    path_of(module).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def path_of(module: str) -> Path:
    """Return the file of a module of tests, which is named by its path."""
    name = str(Path(module).with_suffix("")).removeprefix("tests/").replace("/", ".")
    return ANSWERS / f"{name}.xz"


@cache
def recorded_answers(module: str) -> dict[str, list[str]]:
    """Return what is recorded for a module. Read once by each process."""
    return read_answers(module)


def recording(module: str, test: str) -> Recording:
    """Return what was recorded for a test. Fails the test if nothing was."""
    lines = recorded_answers(module).get(test)
    if lines is None:
        _not_recorded("there is nothing for this test")
    return Recording(lines)


def _not_recorded(what: str) -> NoReturn:
    pytest.fail(
        f"Not what was recorded of Apache Kafka: {what}.\nEither Ottla does another thing than it did, or the"
        " test asks for one. `pytest --oracle live` compares with Apache Kafka itself (needs Java). If the"
        " change is meant, `make golden` records Kafka's answers anew.",
        pytrace=False,
    )


def _without(place: Path | None, text: str) -> str:
    return text if place is None else text.replace(str(place), _PLACE)


def _drawn(strategy: SearchStrategy[T], count: int) -> list[T]:
    """Draw examples before any of them is used."""
    found: list[T] = []

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found
