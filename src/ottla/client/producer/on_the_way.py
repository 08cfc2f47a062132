"""What of each partition is on its way, and what may follow it.

A batch that must be sent again holds its partition back until everything of it that is on the way has come
home. Then the batches go out again in their order, and the broker drops what it has already: it remembers
five batches, so no more than that are ever on the way.

A producer that numbers its batches gets gaps in its numbers when a batch is given up. The partition goes on
in its next epoch (KIP-360), but only when nothing that has a number is left of it: the broker may have such a
batch already, and would take it again under another number.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import ProducerIdentity
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid


class OnTheWay:
    """The batches between queue and answer.

    `queued` returns what waits for a partition, and `drop` fails some of it. `numbers` says whether batches
    have numbers, and `renews` whether the producer itself may begin an epoch; in a transaction the
    coordinator does.
    """

    def __init__(
        self,
        identity: ProducerIdentity,
        queued: Callable[[TopicPartition], list[Batch]],
        drop: Callable[[Batch], None],
        batches_max: int,
        *,
        numbers: bool,
        renews: bool,
    ) -> None:
        self._identity = identity
        self._queued = queued
        self._drop = drop
        self._batches_max = batches_max
        self._numbers = numbers
        self._renews = renews
        self._batches: dict[TopicPartition, list[Batch]] = defaultdict(list)
        self._held_back: set[TopicPartition] = set()
        self._with_gap: set[TopicPartition] = set()
        self._out_of_order: set[TopicPartition] = set()

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batches in self._batches.values() for batch in batches)

    def __contains__(self, batch: Batch) -> bool:
        return batch in self._batches.get(batch.where, ())

    def may_leave(self, batch: Batch, topic_id: Uuid) -> bool:
        """Say whether a batch may be sent now.

        Until the first batch of a partition is acknowledged, no other follows. If the first was refused, or
        went to an old leader, a broker would take the second one, and the first could only come after it.
        """
        where = batch.where
        before = len(self._batches.get(where, ()))
        if where in self._held_back or before >= self._batches_max:
            return False
        if batch.base_sequence < 0 and where in self._with_gap:
            return False
        return not before or not self._numbers or self._identity.is_known_in(where, topic_id)

    def left(self, batch: Batch) -> None:
        """Take note that a batch was sent."""
        self._batches[batch.where].append(batch)

    def is_first(self, batch: Batch) -> bool:
        """Say whether nothing that was sent before this batch is still open."""
        return self._batches[batch.where][0] is batch and batch.where not in self._held_back

    def hold_back(self, where: TopicPartition) -> None:
        """Send nothing more until all that is on the way has come home."""
        self._held_back.add(where)

    def came_home(self, batch: Batch) -> None:
        """Take note that a batch is not on the way any more. It is done, or back in its queue."""
        where = batch.where
        on_the_way = self._batches[where]
        if batch in on_the_way:
            on_the_way.remove(batch)
        if not on_the_way:
            del self._batches[where]
            self._held_back.discard(where)
        self._maybe_start_again(where)

    def was_out_of_order(self, where: TopicPartition) -> None:
        """Take note that a broker refused the number that comes next."""
        if self._renews:
            self._out_of_order.add(where)

    def was_given_up(self, batch: Batch) -> None:
        """Take note that a batch failed. If it had a number, its partition has a gap, or perhaps not."""
        if self._renews and batch.base_sequence >= 0:
            self._with_gap.add(batch.where)
            self._maybe_start_again(batch.where)

    def _maybe_start_again(self, where: TopicPartition) -> None:
        if where in self._batches or not (where in self._with_gap or where in self._out_of_order):
            return
        numbered = [batch for batch in self._queued(where) if batch.base_sequence >= 0]
        if where in self._out_of_order:
            # What followed the refused batch was refused as well, so nothing of this is in the log.
            self._out_of_order.discard(where)
            self._with_gap.discard(where)
            keeps_id = self._identity.start_again(where)
            for batch in numbered:
                batch.renumber()
                if batch.may_still_come and not keeps_id:
                    # Under another id, nothing would keep out the copy that is on its way.
                    self._drop(batch)
            return
        if numbered:
            return
        if not self._identity.is_complete_in(where):
            self._identity.start_again(where)
        self._with_gap.discard(where)
