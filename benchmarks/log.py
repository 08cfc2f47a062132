"""The log, measured: append, look-up, group commit, recovery beside Apache Kafka, compaction.

    make bench WHAT=log

Every line has its goal and whether it was met, and the noise: the share of the machine's CPU that others took
meanwhile. See the modules for what is done exactly.
"""

import sys

from benchmarks import compaction, log_append, log_group_commit, log_recovery
from benchmarks.log_world import Scratch


def main() -> int:
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with Scratch() as scratch:
        tell(log_append.measure_append(scratch))
        tell(log_append.measure_look_up(scratch))
    results: list[log_group_commit.Result] = []
    for partitions in log_group_commit.PARTITIONS:
        found = log_group_commit.measure(partitions)
        tell(log_group_commit.describe(found))
        results += found
    for row in compaction.rows():
        tell(str(row))
    tell(log_recovery.measure())
    print(f"\n{log_group_commit.table(results)}")
    return int(any("MISSED" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
