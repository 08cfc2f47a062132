"""All shards of one coordinator on this node: which there are, and which one serves a key."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from ottla.coordination.runtime.decision import Answer, Decision, ProducerIdentity, Refuse, ignore
from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.runtime.shard import Shard, ShardLog, ShardStatus, State
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")
S = TypeVar("S", bound=State)


class Shards(Generic[S]):
    """The shards this node leads. Elections may arrive out of order: the newer epoch wins."""

    def __init__(self, new_state: Callable[[int], S]) -> None:
        self._new_state = new_state
        self._shards: dict[int, Shard[S]] = {}
        self.partition_count: int | None = None
        """How many partitions the internal topic really has; None until it exists."""

    def elect(self, partition: int, epoch: int, log: ShardLog) -> Shard[S] | None:
        """Start a shard for a partition this node leads now. None when a newer one is there already."""
        current = self._shards.get(partition)
        if current is not None:
            if current.epoch >= epoch:
                return None
            current.resign()
        shard = Shard(partition, epoch, self._new_state(partition), log)
        self._shards[partition] = shard
        return shard

    def resign(self, partition: int, epoch: int) -> None:
        """Drop a shard, unless it was elected in a newer epoch than the one that ends."""
        current = self._shards.get(partition)
        if current is not None and current.epoch <= epoch:
            del self._shards[partition]
            current.resign()

    def partition_of(self, key: str) -> int | None:
        """Return the partition that holds `key`, or None while the internal topic does not exist."""
        return None if self.partition_count is None else partition_of_key(key, self.partition_count)

    def find(self, key: str) -> Shard[S] | ErrorCode:
        """Return the shard that serves `key`, or what to tell the client instead.

        Without the internal topic nobody is the coordinator: FindCoordinator has it created.
        """
        partition = self.partition_of(key)
        shard = None if partition is None else self._shards.get(partition)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.status is ShardStatus.ACTIVE else shard.refusal

    def write(
        self,
        key: str,
        decide: Callable[[S], Decision[R]],
        answer: Answer[R],
        refuse: Refuse,
        producer: ProducerIdentity | None = None,
    ) -> None:
        """Have the shard of `key` decide and write, or refuse if this node does not serve it."""
        shard = self.find(key)
        if isinstance(shard, Shard):
            shard.write(decide, answer, refuse, producer)
        else:
            refuse(shard)

    def read(self, key: str, query: Callable[[S], R], answer: Answer[R], refuse: Refuse) -> None:
        """Have the shard of `key` answer from its state, or refuse if this node does not serve it."""
        shard = self.find(key)
        if isinstance(shard, Shard):
            shard.read(query, answer, refuse)
        else:
            refuse(shard)

    def read_all(self, query: Callable[[S], list[R]], answer: Answer[list[R] | ErrorCode]) -> None:
        """Gather what all shards of this node answer; an error if some of them cannot answer now."""
        shards = [shard for shard in self if shard.refusal is not ErrorCode.NOT_COORDINATOR]
        refusal = next((shard.refusal for shard in shards if shard.refusal is not ErrorCode.NONE), None)
        if refusal is not None:
            answer(refusal)
            return
        gathered: list[R] = []
        missing = len(shards) + 1
        error = ErrorCode.NONE

        def add(some: list[R], code: ErrorCode = ErrorCode.NONE) -> None:
            nonlocal missing, error
            gathered.extend(some)
            error = error or code
            missing -= 1
            if missing == 0:
                answer(gathered if error is ErrorCode.NONE else error)

        def refuse(code: ErrorCode) -> None:
            # A shard that resigns meanwhile has nothing any more: another node answers for it.
            add([], ErrorCode.NONE if code is ErrorCode.NOT_COORDINATOR else code)

        for shard in shards:
            shard.read(query, add, refuse)
        add([])

    def submit(
        self,
        partition: int,
        decide: Callable[[], Decision[R]],
        answer: Answer[R] = ignore,
        refuse: Refuse = ignore,
    ) -> None:
        """Write what a timer's action or an effect decides, if the shard of the partition still serves."""
        shard = self._shards.get(partition)
        if shard is not None and shard.status is ShardStatus.ACTIVE:
            shard.write(lambda _: decide(), answer, refuse)
        else:
            refuse(ErrorCode.NOT_COORDINATOR)

    def get(self, partition: int) -> Shard[S] | None:
        """Return the shard of a partition, whatever its status."""
        return self._shards.get(partition)

    def __iter__(self) -> Iterator[Shard[S]]:
        # A copy: metrics are collected by another thread.
        yield from [shard for _, shard in sorted(self._shards.items(), key=itemgetter(0))]
