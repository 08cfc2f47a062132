"""Bugs to plant in the tasks of connectors, to see whether their simulation finds them."""

from typing import Final

from tests.simulation.planting import Bug

from ottla.connect.connectors.sql.table_sink import TableSinkTask
from ottla.connect.running.sink import SinkRun, _Batch
from ottla.connect.running.source import SourceRun

BUGS: Final = {
    "dead-letters-are-thrown-away": Bug(
        "Dead letters are thrown away.",
        SinkRun._bury,
        "if not letters or topic is None:",
        "if True:",
    ),
    "lost-partitions-stay-in-the-batch": Bug(
        "Records of partitions that others have by now are put all the same.",
        _Batch.drop,
        "item.origin.where not in partitions",
        "True",
    ),
    "lost-partitions-are-committed": Bug(
        "Offsets of partitions that others have by now are committed.",
        SinkRun._lost,
        "self._put.pop(where, None)",
        "pass",
    ),
    "failures-are-committed": Bug(
        "A task that has failed commits when it leaves its group.",
        SinkRun.run,
        "self._has_failed = True",
        "pass",
    ),
    "targets-do-not-say-where": Bug(
        "A task goes on at the offset of the group, though the target has its own.",
        SinkRun._assigned,
        "self._consumer.seek(where, offset)",
        "pass",
    ),
    "what-is-done-is-put-again": Bug(
        "Of records that had to wait, those that were taken are put again.",
        SinkRun._push,
        "del batch.records[: error.done]",
        "pass",
    ),
    "positions-of-others-are-written": Bug(
        "A source writes positions again that it has written before.",
        SourceRun._commit,
        "self._last.clear()",
        "pass",
    ),
    "earlier-tasks-are-not-fenced": Bug(
        "A source task begins before the earlier ones are fenced.",
        SourceRun.run,
        "await self._barrier.wait_until_fenced(is_stopping)",
        "pass",
    ),
    "positions-are-not-caught-up": Bug(
        "A source task goes on at positions that it happens to know.",
        SourceRun.run,
        "await self._positions.catch_up()",
        "pass",
    ),
    "rows-of-others-are-written-again": Bug(
        "A table is written without a look at what another task has written.",
        TableSinkTask._write,
        "lambda: self._check_positions(records)",
        "lambda: None",
    ),
}
