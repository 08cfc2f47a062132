"""Who the producer is to the brokers: a producer id and an epoch, and the next sequence for each partition.

With them a broker recognises a batch that it has already, so that a retry never makes a duplicate. A new
epoch starts all sequences at 0 again.
"""

from ottla.model.ids import TopicPartition

_SEQUENCES = 1 << 31


class ProducerIdentity:
    """The numbers of an idempotent producer."""

    def __init__(self) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self._next_sequence: dict[TopicPartition, int] = {}
        self._known_in: set[TopicPartition] = set()

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
        self._next_sequence.clear()

    def next_sequence(self, where: TopicPartition, records: int) -> int:
        """Return the sequence for a batch, and move on by its records. After 2^31 - 1 comes 0."""
        sequence = self._next_sequence.get(where, 0)
        self._next_sequence[where] = (sequence + records) % _SEQUENCES
        return sequence

    def acknowledged(self, where: TopicPartition) -> None:
        """Note that a partition has a batch of this producer."""
        self._known_in.add(where)

    def is_known_in(self, where: TopicPartition) -> bool:
        """Say whether every leader of a partition knows this producer, and takes no sequence but the next.

        Of a producer that it does not know, a broker takes any sequence as the first one (KIP-360).
        """
        return where in self._known_in
