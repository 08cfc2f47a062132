"""Who the producer is to the brokers: a producer id and an epoch, and the next sequence for each partition.

With them a broker recognises a batch that it has already, so that a retry never makes a duplicate. A new
epoch starts sequences at 0 again. Brokers keep these numbers for each partition by itself. So a producer
without transactions gives a new epoch to those partitions alone that need one; what other partitions have on
the way keeps its numbers, and is still recognised.
"""

from typing import Final

from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid

_SEQUENCES: Final = 1 << 31
_EPOCH_MAX: Final = (1 << 15) - 1


class _Numbers:
    """The numbers of one partition."""

    __slots__ = ("acknowledged_up_to", "next_sequence", "producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.acknowledged_up_to = 0
        """The sequence after the last acknowledged batch."""


class ProducerIdentity:
    """The numbers of an idempotent producer."""

    def __init__(self) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self._numbers: dict[TopicPartition, _Numbers] = {}
        self._known_in: dict[TopicPartition, Uuid] = {}
        """Partitions that have a batch of this producer id, with the ids of their topics."""

    @property
    def is_known(self) -> bool:
        """Say whether a broker gave us an id."""
        return self.producer_id >= 0

    def assume(self, producer_id: int, producer_epoch: int) -> None:
        """Take the id and epoch a broker gave. Sequences start again."""
        if producer_id != self.producer_id:
            self._known_in.clear()
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._numbers.clear()

    def take_another(self, producer_id: int, producer_epoch: int) -> None:
        """Take an id for partitions that have none yet. The others go on with the one they have."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def numbers_in(self, where: TopicPartition) -> tuple[int, int]:
        """Return the producer id and the epoch for a partition."""
        numbers = self._numbers_of(where)
        return numbers.producer_id, numbers.producer_epoch

    def next_sequence(self, where: TopicPartition, records: int) -> int:
        """Return the sequence for a batch, and move on by its records. After 2^31 - 1 comes 0."""
        numbers = self._numbers_of(where)
        sequence = numbers.next_sequence
        numbers.next_sequence = (sequence + records) % _SEQUENCES
        return sequence

    def start_again(self, where: TopicPartition) -> bool:
        """Begin the next epoch of a partition. After the last one, another producer id is needed.

        Returns whether the id stays: then brokers refuse whatever of the earlier epochs is still on its way.
        """
        numbers = self._numbers.pop(where, None)
        if numbers is None:
            return True
        if numbers.producer_epoch < _EPOCH_MAX:
            self._numbers[where] = _Numbers(numbers.producer_id, numbers.producer_epoch + 1)
            return True
        self._known_in.pop(where, None)
        if numbers.producer_id == self.producer_id:
            self.producer_id = self.producer_epoch = -1
        return False

    def acknowledged(
        self, where: TopicPartition, base_sequence: int, records: int, topic_id: Uuid = ZERO_UUID
    ) -> None:
        """Note that a partition has a batch of this producer."""
        self._known_in[where] = topic_id
        self._numbers_of(where).acknowledged_up_to = (base_sequence + records) % _SEQUENCES

    def is_complete_in(self, where: TopicPartition) -> bool:
        """Say whether the last batch that got a number was acknowledged."""
        numbers = self._numbers.get(where)
        return numbers is None or numbers.acknowledged_up_to == numbers.next_sequence

    def is_known_in(self, where: TopicPartition, topic_id: Uuid = ZERO_UUID) -> bool:
        """Say whether every leader of a partition knows this producer, and takes no sequence but the next.

        Of a producer that it does not know, a broker takes any sequence as the first one (KIP-360). A topic
        that was deleted and made again knows nobody.
        """
        return self._known_in.get(where) == topic_id

    def _numbers_of(self, where: TopicPartition) -> _Numbers:
        numbers = self._numbers.get(where)
        if numbers is None:
            numbers = self._numbers[where] = _Numbers(self.producer_id, self.producer_epoch)
        return numbers
