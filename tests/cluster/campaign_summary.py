"""What came of a campaign: a line for each slice, kept at once, and one for all of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

OPERATIONS: Final = ("txn", "copy", "send", "poll")
"""What counts as an operation. An assignment does not, nor does a look, nor the reading at the end."""
SHOWN_MAX: Final = 5


class Summary:
    """Adds slices up. Each is written to a file as soon as it is over."""

    def __init__(self, path: Path, **setting: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._setting = setting
        self._slices = 0
        self._operations = 0
        self._seconds = 0.0
        self._lost_bytes = 0
        self._wrong_seeds: list[int] = []
        self._counters: dict[str, Counter[str]] = {
            name: Counter() for name in ("outcomes", "counts", "anomalies", "stale", "legal", "faults")
        }

    @property
    def anomalies(self) -> int:
        """How many things happened that must not."""
        return self._counters["anomalies"].total()

    @property
    def faults(self) -> int:
        """How many faults there were."""
        return self._counters["faults"].total()

    def add(self, found: dict[str, Any]) -> str:
        """Keep what came of a slice. Returns its line."""
        counts = Counter(found["counts"])
        outcomes = outcomes_of(counts)
        operations = outcomes.total()
        self._slices += 1
        self._operations += operations
        self._seconds += found["seconds"]
        self._lost_bytes += found["lost_bytes"]
        anomalies = Counter(name for name, *_ in found["anomalies"])
        if anomalies:
            self._wrong_seeds.append(found["seed"])
        for name, more in {**found, "outcomes": outcomes, "anomalies": anomalies}.items():
            if name in self._counters:
                self._counters[name].update(more)
        line = {
            **found,
            "operations": operations,
            "per_second": round(operations / max(found["seconds"], 1), 1),
            "outcomes": _shares(outcomes),
            "anomalies": anomalies,
            "first_anomalies": found["anomalies"][:SHOWN_MAX],
        }
        with self._path.open("a") as file:
            file.write(json.dumps({**self._setting, **line}) + "\n")
        return json.dumps(line)

    def line(self) -> str:
        """Return what came of all slices."""
        return json.dumps(
            {
                "total": self._setting,
                "slices": self._slices,
                "operations": self._operations,
                "seconds": round(self._seconds),
                "per_second": round(self._operations / max(self._seconds, 1), 1),
                **self._counters,
                "outcomes": _shares(self._counters["outcomes"]),
                "lost_bytes": self._lost_bytes,
                "wrong_seeds": self._wrong_seeds,
            }
        )


def outcomes_of(counts: Counter[str]) -> Counter[str]:
    """Return how many operations ended how, whatever their function."""
    outcomes: Counter[str] = Counter()
    for name, count in counts.items():
        function, end = name.split()
        if function in OPERATIONS:
            outcomes[end] += count
    return outcomes


def _shares(outcomes: Counter[str]) -> dict[str, float]:
    return {name: round(count / outcomes.total(), 4) for name, count in sorted(outcomes.items())}
