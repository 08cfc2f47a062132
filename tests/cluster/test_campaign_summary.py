"""The line of a slice, and the one of all slices."""

import json
from pathlib import Path
from typing import Any

from tests.cluster.campaign_summary import Summary


def found(seed: int, **others: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "anomalies": [],
        "stale": {},
        "legal": {"G0": 2},
        "counts": {"txn ok": 60, "send ok": 30, "poll fail": 9, "copy info": 1, "look ok": 7, "assign ok": 5},
        "faults": {"kill": 1},
        "lost_bytes": 10,
        "seconds": 4.0,
        **others,
    }


def test_what_clients_only_watch_is_no_operation(tmp_path: Path) -> None:
    line = json.loads(Summary(tmp_path / "summary.jsonl").add(found(1)))
    assert (line["operations"], line["per_second"]) == (100, 25.0)
    assert line["outcomes"] == {"ok": 0.9, "fail": 0.09, "info": 0.01}


def test_slices_are_added_up_and_kept_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "summary.jsonl"
    summary = Summary(path, nodes="ottla")
    summary.add(found(1))
    assert len(path.read_text().splitlines()) == 1
    summary.add(found(2, anomalies=[["unseen", 3, "value 7", False]] * 6, faults={"kill": 2, "pause": 1}))
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [1, 2]
    total = json.loads(summary.line())
    assert (total["operations"], total["slices"], total["lost_bytes"]) == (200, 2, 20)
    assert (total["anomalies"], total["wrong_seeds"]) == ({"unseen": 6}, [2])
    assert total["faults"] == {"kill": 3, "pause": 1}
    assert (summary.anomalies, summary.faults) == (6, 4)
