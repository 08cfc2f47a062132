"""Holds what readers saw against what lies in the log, as Apache Kafka's `DumpLogSegments` tells it.

Every offset that a reader of committed records has not seen must be a marker's or an aborted record's. So the
committed records are worked out anew, from the tool's output alone, and have to be what was read.
"""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.java.jars import java_classpath, java_command

from ottla.testing.guarantees.generator import key_of_partition

Committed = dict[int, list[list[int]]]
"""By key, offsets and values."""

_FIELD = re.compile(r"(\w+): (\S+)")
_TOPIC = re.compile(r"t(\d+)-(\d+)")


def check_offsets(data_directory: Path, history: Path) -> int:
    """Check the partitions of a campaign whose node is stopped. Return how many records there are."""
    in_log = {key: records for key, records in committed_in_logs(data_directory).items() if records}
    readings = last_readings(history)
    assert readings, "somebody has read everything"
    for read in readings:
        assert read == in_log
    return sum(map(len, in_log.values()))


def last_readings(history: Path) -> list[Committed]:
    """Return what those have read who read everything."""
    readings = []
    with history.open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["f"] == "final" and event["type"] == "ok":
                readings.append({int(key): records for key, records in event["value"][0][1].items()})
    return readings


def committed_in_logs(data_directory: Path) -> Committed:
    """Return the committed records of all partitions that stand for a key."""
    segments = [path for path in sorted(data_directory.rglob("*.log")) if _TOPIC.fullmatch(path.parent.name)]
    command = java_command(
        java_classpath(),
        "org.apache.kafka.tools.DumpLogSegments",
        "--print-data-log",
        "--files",
        ",".join(map(str, segments)),
    )
    lines: dict[int, list[str]] = defaultdict(list)
    key = -1
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("Dumping "):
            match = _TOPIC.fullmatch(Path(line.removeprefix("Dumping ")).parent.name)
            assert match is not None, line
            key = key_of_partition(f"t{match[1]}", int(match[2]))
        else:
            lines[key].append(line)
    return {key: committed_in_log(some) for key, some in lines.items()}


def committed_in_log(lines: Iterable[str]) -> list[list[int]]:
    """Work out what is committed in one log, and see that no offset is missing from it."""
    committed: list[list[int]] = []
    still_open: dict[str, list[list[int]]] = defaultdict(list)
    producer = ""
    next_offset = 0
    for line in lines:
        fields = dict(_FIELD.findall(line))
        if line.startswith("baseOffset"):
            producer = fields["producerId"]
        elif line.startswith("| offset"):
            offset = int(fields["offset"])
            assert offset == next_offset, f"{offset} follows {next_offset - 1}"
            next_offset = offset + 1
            marker = fields.get("endTxnMarker")
            if marker is None:
                still_open[producer].append([offset, int(fields["payload"])])
            elif marker == "COMMIT":
                committed += still_open.pop(producer, [])
            else:
                still_open.pop(producer, None)
    assert not still_open, f"transactions of {list(still_open)} are open"
    return sorted(committed)
