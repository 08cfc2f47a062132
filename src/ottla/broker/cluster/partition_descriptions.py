"""Partitions as answers describe them, encoded, many at once.

Most partitions of a topic differ in their number alone. So each way in which they can look is encoded once,
and the number put in. On a busy machine making and encoding an object for each of 10,000 partitions took 84
to 170 ms, and this way takes 15 to 45 ms.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from struct import Struct
from typing import Any, Final

from ottla.wire.codec import encode_struct
from ottla.wire.encoded_items import as_array
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.partitions import PartitionRecord

_LOOK: Final[Callable[[PartitionRecord], tuple[Any, ...]]] = attrgetter(
    "leader", "leader_epoch", "replicas", "isr", "eligible_leader_replicas", "last_known_elr"
)
"""All that an answer says about a partition, except its number."""
_NUMBER: Final = Struct(">i")
_NUMBER_AT: Final = slice(2, 6)
"""Where the number lies in what describes a partition: behind the error code, in every version."""


def leader_and_replicas(record: PartitionRecord, living: frozenset[int]) -> dict[str, Any]:
    """Return what all answers say about a partition; if its leader is not alive, clients see none."""
    has_leader = record.leader in living
    return {
        "error_code": ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        "partition_index": record.partition_id,
        "leader_id": record.leader if has_leader else -1,
        "leader_epoch": record.leader_epoch,
        "replica_nodes": record.replicas,
        "isr_nodes": record.isr,
        "offline_replicas": tuple(replica for replica in record.replicas if replica not in living),
    }


class PartitionDescriptions:
    """Encodes descriptions of partitions for one message in one version."""

    def __init__(self, describe: Callable[[PartitionRecord], Any], message: type[Any], version: int) -> None:
        self._describe = describe
        self._message = message
        self._version = version
        self._around: dict[tuple[Any, ...], tuple[bytes, bytes]] = {}

    def encode(self, records: Iterable[PartitionRecord]) -> Any:
        """Return what stands for the array of the partitions' descriptions."""
        known, pack = self._around, _NUMBER.pack
        pieces: list[bytes] = []
        for record in records:
            look = _LOOK(record)
            around = known.get(look)
            if around is None:
                around = known[look] = self._encode_around(record)
            pieces += (around[0], pack(record.partition_id), around[1])
        return as_array(len(pieces) // 3, b"".join(pieces))

    def _encode_around(self, record: PartitionRecord) -> tuple[bytes, bytes]:
        """Return what lies before and behind the number of a partition that looks like this one."""
        encoded = encode_struct(self._describe(record), self._message, self._version)
        assert encoded[_NUMBER_AT] == _NUMBER.pack(record.partition_id), "the number lies elsewhere"
        return encoded[: _NUMBER_AT.start], encoded[_NUMBER_AT.stop :]
