"""Where the nodes of tests depart from those that users run, and why.

Users run `ottla up`, or `ottla up --nodes 3`, with the defaults. What a kind of node for tests sets otherwise
stands here, and `tests/unit/testing/test_departures.py` compares it with what it really sets. What a single
test gives its nodes is that test's own business.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Departure(NamedTuple):
    """A config that is not what users have."""

    value: str
    reason: str


_NO_JOURNAL: Final = Departure(
    "false",
    "Tests count topics, logs, batches and metrics, which a journal would add to while they look. The shared "
    "nodes of tests/clients and what graduates in tests/cluster/test_take_over.py keep one.",
)
_AT_ONCE: Final = Departure("0", "The first member of a group would wait three seconds for others.")
_ONE_PARTITION: Final = Departure("1", "50 partitions are 50 directories to make, load and delete.")
_THREE_PARTITIONS: Final = Departure("3", "Enough for each node to coordinate some; 50 take long to elect.")
_ONE_REPLICA: Final = Departure("1", "These tests are about the metadata, and end several members.")

DEPARTURES: Final[Mapping[str, Mapping[str, Departure]]] = {
    "ottla.testing.node": {
        "ottla.acks.all.sync": Departure(
            "false",
            "It saves a sync for each write. What is acknowledged survives the end of the process all the "
            "same. Tests of slow disks and of power cuts switch it on.",
        ),
        "offsets.topic.num.partitions": _ONE_PARTITION,
        "transaction.state.log.num.partitions": _ONE_PARTITION,
        "group.initial.rebalance.delay.ms": _AT_ONCE,
        "ottla.journal.enable": _NO_JOURNAL,
    },
    "ottla.testing.simulation": {"ottla.journal.enable": _NO_JOURNAL},
    "tests.support.ottla_node": {"ottla.journal.enable": _NO_JOURNAL},
    "tests.support.mixed_cluster": {
        "offsets.topic.num.partitions": _THREE_PARTITIONS,
        "transaction.state.log.num.partitions": _THREE_PARTITIONS,
        "group.initial.rebalance.delay.ms": _AT_ONCE,
    },
    "tests.support.quorum_members": {
        "offsets.topic.num.partitions": _ONE_PARTITION,
        "transaction.state.log.num.partitions": _ONE_PARTITION,
        "default.replication.factor": _ONE_REPLICA,
        "min.insync.replicas": _ONE_REPLICA,
        "offsets.topic.replication.factor": _ONE_REPLICA,
        "transaction.state.log.replication.factor": _ONE_REPLICA,
        "transaction.state.log.min.isr": _ONE_REPLICA,
    },
}
"""By the module that makes the nodes."""
