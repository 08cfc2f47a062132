"""Bugs to plant in clients, to see whether their hostile world finds them."""

from typing import Final

from tests.simulation.planting import Bug

from ottla.client.cluster import Cluster
from ottla.client.consumer.assignment import PartitionState
from ottla.client.consumer.broker_led import BrokerLedMembership
from ottla.client.consumer.classic import ClassicMembership
from ottla.client.consumer.fetch_session import FetchSession
from ottla.client.consumer.membership import Handover, Membership
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.on_the_way import OnTheWay
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
    "transactions-forget-failures": Bug(
        "A transaction does not learn that one of its records failed.",
        Sender._fail,
        "self._gate.failed(error, fatal=False)",
        "pass",
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
    "callers-keep-memory": Bug(
        "A caller who gives up just when it is handed memory keeps it.",
        Accumulator.wait_for_room,
        "self.give_back(size_bytes)",
        "pass",
    ),
    "others-wait-for-ever": Bug(
        "Callers behind one who gives up waiting for memory are not looked at.",
        Accumulator.give_back,
        "self._hand_out()",
        "pass",
    ),
    "gaps-are-closed-too-early": Bug(
        "After a gap a partition begins its next epoch while batches with old numbers are left.",
        OnTheWay._maybe_start_again,
        "if numbered:",
        "if False:",
    ),
    "gaps-stay": Bug(
        "A partition with a gap in its numbers goes on in its epoch.",
        OnTheWay.was_given_up,
        "self._with_gap.add(batch.where)",
        "pass",
    ),
    "last-epochs-go-on": Bug(
        "The producer id is kept after its last epoch.",
        ProducerIdentity.start_again,
        "numbers.producer_epoch < _EPOCH_MAX",
        "True",
    ),
    "halves-change-places": Bug(
        "The second half of a batch that is split has the place of the first.",
        Batch.split,
        "(number, begin + middle)",
        "(number, begin - 1)",
    ),
    "dead-leaders-are-asked-again": Bug(
        "Nobody asks who leads the partitions of a broker that cannot be reached.",
        Sender._connect,
        "self._learn_soon({where.topic for where in partitions})",
        "pass",
    ),
    "new-partitions-are-not-seen": Bug(
        "A producer does not look for new partitions while all is well.",
        Sender._maybe_learn,
        "self._learn_soon(used)",
        "pass",
    ),
    "aborts-leave-gaps": Bug(
        "After a batch was dropped, a transaction does not ask for the next epoch.",
        Transactions.left_gap,
        "self._needs_epoch = True",
        "pass",
    ),
    "commits-that-were-cut-off-are-aborted": Bug(
        "A transaction whose commit was asked for may be aborted.",
        vars(Transactions)["may_abort"].fget,
        "not (self._commits and self._was_asked)",
        "True",
    ),
    "revoked-partitions-are-read-on": Bug(
        "What is given up is handed over until its callback is done.",
        Handover.give_up,
        "self.assignment.replace(self.owned - revoked, Status.NEEDS_COMMITTED)",
        "pass",
    ),
    "losses-are-forgotten-by-joiners": Bug(
        "A classic member that the group has forgotten keeps what it owns.",
        ClassicMembership._forget,
        "self._lose(code.name)",
        "pass",
    ),
}
