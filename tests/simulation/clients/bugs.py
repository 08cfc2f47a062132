"""Bugs to plant in clients, to see whether their hostile world finds them."""

from typing import Final

from tests.simulation.planting import Bug

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
}
