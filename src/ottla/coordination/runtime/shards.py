"""All shards of one coordinator on this node: which there are, and which one serves a key."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.runtime.shard import Shard, ShardLog, ShardStatus, State
from ottla.wire.error_code import ErrorCode

S = TypeVar("S", bound=State)


class Shards(Generic[S]):
    """The shards this node leads. Elections may be told out of order: the newer epoch wins."""

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

        Without the internal topic nobody is the coordinator: who asks for one has it created.
        """
        partition = self.partition_of(key)
        shard = None if partition is None else self._shards.get(partition)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.status is ShardStatus.ACTIVE else shard.refusal

    def get(self, partition: int) -> Shard[S] | None:
        """Return the shard of a partition, whatever its status."""
        return self._shards.get(partition)

    def __iter__(self) -> Iterator[Shard[S]]:
        # A copy: metrics are collected by another thread.
        yield from [shard for _, shard in sorted(self._shards.items(), key=itemgetter(0))]
