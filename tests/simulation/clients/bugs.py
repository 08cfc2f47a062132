"""Bugs to plant in clients, to see whether their hostile world finds them."""

from typing import Final

from tests.simulation.planting import Bug

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignment import PartitionState
from ottla.client.consumer.broker_led import BrokerLedMembership
from ottla.client.consumer.fetch_session import FetchSession
from ottla.client.consumer.membership import Membership
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.sender import Sender
from ottla.client.producer.transactions import Transactions

BUGS: Final = {
    "retries-get-new-numbers": Bug(
        "A batch whose answer was lost is numbered again.",
        Sender._try_again,
        "batch.retry_at_s = now_s + pause_s(batch.attempts, *self._rests)",
        "batch.renumber()",
    ),
    "batches-come-back-in-front": Bug(
        "A batch that is sent again goes before those that were made earlier.",
        Accumulator.put_back,
        "queue[place].ordinal < batch.ordinal",
        "False",
    ),
    "unknown-producers-send-ahead": Bug(
        "Several batches are sent before a broker knows the producer.",
        ProducerIdentity.is_known_in,
        "self._known_in.get(where) == topic_id",
        "True",
    ),
    "transactions-forget-failures": Bug(
        "A transaction does not learn that one of its records failed.",
        Sender._fail,
        "self._gate.failed(error, fatal=False)",
        "pass",
    ),
    "transactions-remember-partitions": Bug(
        "A transaction takes the partitions of the one before for its own.",
        Transactions.begin,
        "self._partitions.clear()",
        "pass",
    ),
    "batches-keep-memory": Bug(
        "A finished batch does not give all of its memory back.",
        Accumulator.release,
        "batch.content_bytes",
        "batch.content_bytes - 1",
    ),
    "positions-skip": Bug(
        "After each answer of a leader one record is skipped.",
        PartitionState.add,
        "self.fetch_offset = chunk.next_offset",
        "self.fetch_offset = chunk.next_offset + 1",
    ),
    "sessions-go-on": Bug(
        "A fetch session goes on though a request of it was lost.",
        FetchSession.lost,
        "self._epoch = _INITIAL_EPOCH",
        "pass",
    ),
    "coordinators-stay": Bug(
        "A coordinator that is gone is asked again and again.",
        Cluster.forget_coordinator,
        "self._coordinators.pop((key_type, key), None)",
        "pass",
    ),
    "losses-are-not-handled": Bug(
        "A member that its group has dropped does not let go of its partitions.",
        vars(BrokerLedMembership)["_needs_step"].fget,
        "self._lost or ",
        "",
    ),
    "losses-are-not-noted": Bug(
        "A member does not note that its group has dropped it.",
        Membership._lose,
        "self._lost = True",
        "pass",
    ),
    "cut-off-rebalances-are-forgotten": Bug(
        "A rebalance whose poll was cancelled is begun again beside the first.",
        Membership.work,
        "raise  # The call was cancelled, and the step goes on. The next call learns what came of it.",
        "self._step = None; raise",
    ),
}
