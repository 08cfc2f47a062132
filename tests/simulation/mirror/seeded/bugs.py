"""Bugs to plant in mirrors, and the seeds that are known to find them."""

from typing import Final

from tests.simulation.planting import Bug

from ottla.mirror.copying import Copying
from ottla.mirror.failing_over import _abort_open, _refuse_unknown
from ottla.mirror.following import Following
from ottla.mirror.halting import reason_against_source
from ottla.mirror.progress import PartitionProgress

_LAG: Final = vars(PartitionProgress)["lag"].fget
BUGS: Final[dict[str, Bug]] = {
    "errors-end-with-each-round": Bug(
        "a mirror goes on by itself after the source turned out to be another one",
        Copying._renew,
        "if part.has_lost:\n        return",
        "if part.has_lost:\n        part.has_lost = part.halted = False",
    ),
    "topic-ids-are-not-compared": Bug(
        "between two rounds, records of a topic that was made again are copied behind those of the old one",
        Copying._is_same,
        "if ZERO_UUID in (current, part.source_id) or current == part.source_id:",
        "if True:",
    ),
    "copies-forget-their-topic": Bug(
        "a mirror that starts again does not know of which topic a copy is",
        reason_against_source,
        "if not remembered or current == ZERO_UUID or remembered == str(current):",
        "if True:",
    ),
    "unknown-lags-are-zero": Bug(
        "a copy that is not copied to has no lag",
        _LAG,
        "return None",
        "return 0",
    ),
    "unknown-losses-are-accepted": Bug(
        "copies become writable although nobody knows what they lack",
        _refuse_unknown,
        "if unknown:",
        "if False:",
    ),
    "open-transactions-stay-open": Bug(
        "what was open in a copy stays open when it becomes writable",
        _abort_open,
        "if producer.transaction_start_offset is not None:",
        "if False:",
    ),
    "pieces-are-written-behind-a-hole": Bug(
        "what was fetched next is written although the piece before it was not",
        Copying._pieces,
        "if item.fetch_offset != part.position or part.error is not None:",
        "if part.error is not None:",
    ),
    "pieces-of-an-old-copy-are-written": Bug(
        "what was fetched for a copy that was deleted is written to the next one",
        Copying._write_to,
        "if _topic_id(self._target, where) != piece.copy_id:",
        "if False:",
    ),
    "failed-writes-count": Bug(
        "a piece that was not written is not fetched again",
        Copying._write,
        "self._followed.progress_of(where).position = -1",
        "pass",
    ),
    "partitions-do-not-follow": Bug(
        "partitions that are added to the source have no copy",
        Following._keep_up,
        "if there < count:",
        "if False:",
    ),
    "lags-count-what-is-under-way": Bug(
        "the lag counts to where the source was read, not to where the copy ends",
        _LAG,
        "max(self.copied_to, self.source_start)",
        "max(self.position, self.source_start)",
    ),
}
FOUND_BY: Final[dict[str, int]] = {
    "copies-forget-their-topic": 7,
    "errors-end-with-each-round": 3,
    "unknown-lags-are-zero": 0,
    "unknown-losses-are-accepted": 0,
}
