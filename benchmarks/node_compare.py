"""Rows of the comparison: the same work for both brokers, in turns.

A ratio is the median of the ratios of neighbouring blocks. What was measured while others used the machine
is measured again, once, and the quieter of the two counts.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.measure import Noise, Ratio, ratio_of
from benchmarks.node_brokers import Broker

_NOISY = 0.2
"""Above this share of the machine in others' hands a row is measured again, once."""

Brokers = tuple[Broker, Broker]
Measure = Callable[[Broker], float]


class Figure(NamedTuple):
    """What is measured."""

    what: str
    unit: str
    goal: float = 0
    """How many times better than Apache Kafka it is meant to be; 0 where nothing is asked."""
    more_is_better: bool = False


class Row(NamedTuple):
    """One line of the table."""

    what: str
    unit: str
    ottla: float
    apache: float
    ratio: Ratio
    """How many times better Ottla is."""
    noise: float
    """The share of the machine that others used meanwhile."""
    goal: float

    def __str__(self) -> str:
        goal = f"  goal {self.goal}x" if self.goal else ""
        return (
            f"{self.what:<42} {self.ottla:>10,.2f} {self.apache:>10,.2f} {self.unit:<9} "
            f"{self.ratio!s:>24}  noise {self.noise:4.0%}{goal}"
        )

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "ratio": self.ratio._asdict()}


def compare(
    what: str,
    unit: str,
    brokers: Brokers,
    measure: Measure,
    goal: float = 0,
    *,
    blocks: int = 3,
    more_is_better: bool = False,
) -> Row:
    """Measure both in turns, print the row and return it."""
    figure = Figure(what, unit, goal, more_is_better)
    return compare_all([figure], brokers, lambda broker: (measure(broker),), blocks)[0]


def compare_all(
    figures: Sequence[Figure],
    brokers: Brokers,
    measure: Callable[[Broker], Sequence[float]],
    blocks: int = 3,
    *,
    repeats: bool = True,
) -> list[Row]:
    """Do the same with several figures that one measurement gives. What takes minutes is not repeated."""
    rows = _compare_once(figures, brokers, measure, blocks)
    if repeats and rows[0].noise > _NOISY:
        again = _compare_once(figures, brokers, measure, blocks)
        rows = min(rows, again, key=lambda result: result[0].noise)
    for row in rows:
        print(row, flush=True)
    return rows


def _compare_once(
    figures: Sequence[Figure],
    brokers: Brokers,
    measure: Callable[[Broker], Sequence[float]],
    blocks: int,
) -> list[Row]:
    noise = Noise()
    before = sum(broker.cpu_seconds() for broker in brokers)
    found: tuple[list[Sequence[float]], list[Sequence[float]]] = ([], [])
    for block in range(blocks):
        for place in (0, 1) if block % 2 == 0 else (1, 0):
            found[place].append(measure(brokers[place]))
    share = noise.share(sum(broker.cpu_seconds() for broker in brokers) - before)
    rows = []
    for number, (what, unit, goal, more_is_better) in enumerate(figures):
        ottla, apache = ([values[number] for values in of_broker] for of_broker in found)
        ratio = ratio_of(ottla, apache) if more_is_better else ratio_of(apache, ottla)
        rows.append(Row(what, unit, median(ottla), median(apache), ratio, share, goal))
    return rows
