"""All that a history is searched for.

Kafka lets writes of several transactions mix. So cycles that need the order of writes (G0, and every `-ww`
kind of G1c) and gaps between the sends of one transaction are legal. A cycle of reads alone never is, nor one
of reads with the order in which a process or a clock saw them.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.testing.guarantees.anomaly import Anomaly, Finder
from ottla.testing.guarantees.consumption import find_consumed_never, find_consumed_twice
from ottla.testing.guarantees.dependencies import find_cycles
from ottla.testing.guarantees.history import EventType
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.guarantees.ledger import find_torn_transfers, find_wrong_sums
from ottla.testing.guarantees.order import (
    find_jumps_between_operations,
    find_jumps_within_operations,
    find_send_skips,
    find_sends_behind_known_offsets,
    find_sends_out_of_order,
)
from ottla.testing.guarantees.values import (
    find_aborted_reads,
    find_duplicates,
    find_inconsistent_offsets,
    find_lost_writes,
    find_precommitted_reads,
    find_unknown_values,
    find_unseen,
)
from ottla.testing.guarantees.watermarks import find_watermarks_behind, find_watermarks_going_back


def find_stuck(indexes: Indexes) -> Iterator[Anomaly]:
    """Last readers that did not come to the end in time."""
    for operation in indexes.operations:
        if operation.function == "final" and operation.type is not EventType.OK:
            yield Anomaly("stuck", None, f"operation {operation.number}: {operation.error}")


FINDERS: Final[Sequence[Finder]] = (
    find_inconsistent_offsets,
    find_duplicates,
    find_unknown_values,
    find_aborted_reads,
    find_lost_writes,
    find_unseen,
    find_precommitted_reads,
    find_jumps_within_operations,
    find_jumps_between_operations,
    find_sends_out_of_order,
    find_sends_behind_known_offsets,
    find_send_skips,
    find_cycles,
    find_watermarks_going_back,
    find_watermarks_behind,
    find_consumed_twice,
    find_consumed_never,
    find_torn_transfers,
    find_wrong_sums,
    find_stuck,
)


def find_anomalies(indexes: Indexes) -> list[Anomaly]:
    """Return everything that is worth telling, legal or not."""
    return [anomaly for finder in FINDERS for anomaly in finder(indexes)]
