"""What a start may make of damage: all is there, or it says what is not, or it refuses with a sentence.

Never silently less, never a traceback, no offset twice, and nothing aborted for who reads committed records.
"""

import re
from typing import NamedTuple

from tests.damage.world import GROUP, TOPICS, Log, Truth
from tests.support.data_plane import batch_of, fetch, produce
from tests.support.plain_client import PlainClient

from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

_EARLIEST = -2
_COMMITTED = 1


class Seen(NamedTuple):
    """What a reader of committed records gets of a log."""

    values: dict[int, bytes]
    # What the reader was told instead of records, which is not silent.
    refusals: list[str]
    start: int


class Silent(AssertionError):
    """Something is missing, or is there that should not be, and nobody was told."""


def judge(bootstrap: str, truth: Truth, said: str, *, writes: bool = True) -> list[str]:
    """Hold what a node serves against the truth. Returns what is missing and was told."""
    told: list[str] = []
    with PlainClient(bootstrap) as client:
        for topic, (partitions, _) in TOPICS.items():
            for number in range(partitions):
                told += _judge_log(client, (topic, number), truth, said)
        told += _judge_offsets(client, truth, said)
        if writes:
            _judge_writes(client, truth)
    if "Traceback" in said:
        raise Silent(f"a traceback: {said[said.index('Traceback') :][:3000]}")
    return told


def _judge_log(client: PlainClient, log: Log, truth: Truth, said: str) -> list[str]:
    seen = read_log(client, log)
    values = truth.acknowledged.get(log, {})
    hidden = truth.aborted.get(log, set()) & set(seen.values.values())
    if hidden:
        raise Silent(f"{log} shows {len(hidden)} aborted records")
    wrong = {
        at for at, value in seen.values.items() if at < truth.ends.get(log, 0) and values.get(at) != value
    }
    if wrong:
        raise Silent(f"{log} has other records than were written at {sorted(wrong)[:5]}")
    start = truth.starts.get(log, 0)
    missing = [at for at in values if at >= start and at not in seen.values]
    if log[0] == "compacted":
        newer = set(seen.values)
        missing = [at for at in missing if not newer]
    if not missing:
        return []
    name = f"{log[0]}-{log[1]}"
    if f"{name} is damaged" in said or f"{name}: cut" in said or seen.refusals:
        return [f"{name}: {len(missing)} of {len(values)} records, {seen.refusals or 'told in the log'}"]
    raise Silent(f"{name} has lost {len(missing)} of {len(values)} records, from {min(missing)} on")


def read_log(client: PlainClient, log: Log) -> Seen:
    """Read a log from its beginning to its end, as a careful client does."""
    topic, number = log
    values: dict[int, bytes] = {}
    refusals: list[str] = []
    ask = ListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsTopic(
                name=topic,
                partitions=(ListOffsetsPartition(partition_index=number, timestamp=_EARLIEST),),
            ),
        ),
        isolation_level=_COMMITTED,
    )
    found = client.ask(ask).topics[0].partitions[0]
    if found.error_code is not ErrorCode.NONE:
        return Seen({}, [found.error_code.name], -1)
    offset = start = found.offset
    for _ in range(100_000):
        data = fetch(client, topic, offset, number, isolation_level=_COMMITTED)
        if data.error_code is not ErrorCode.NONE:
            refusals.append(data.error_code.name)
            return Seen(values, refusals, start)
        if offset >= data.last_stable_offset:
            if data.last_stable_offset < data.high_watermark:
                refusals.append("a transaction is open")
            return Seen(values, refusals, start)
        after = _take(data, offset, values, refusals)
        if after <= offset:
            refusals.append(f"nothing can be read from {offset} on")
            return Seen(values, refusals, start)
        offset = after
    raise Silent(f"{log} has no end")


def _take(data: object, offset: int, values: dict[int, bytes], refusals: list[str]) -> int:
    """Take the records of an answer. Returns where to go on."""
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())  # type: ignore[attr-defined]
    open_aborted: set[int] = set()
    try:
        for batch in iter_batches(memoryview(data.records or b"")):  # type: ignore[attr-defined]
            while aborted and aborted[0][0] <= batch.last_offset:
                open_aborted.add(aborted.pop(0)[1])
            if not batch.crc_is_valid():
                refusals.append(f"a wrong checksum at {batch.base_offset}")
            elif batch.is_control:
                open_aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in open_aborted):
                for record in iter_batch_records(batch):
                    if record.offset >= offset:
                        values[record.offset] = record.value or b""
            offset = max(offset, batch.last_offset + 1)
    except RecordsError as error:
        refusals.append(str(error))
    return offset


def _judge_offsets(client: PlainClient, truth: Truth, said: str) -> list[str]:
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)))
    topic = OffsetFetchRequestTopics(name="plain", partition_indexes=(0, 1))
    ask = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=(topic,)),), require_stable=False
    )
    for _ in range(1000):
        group = client.ask(ask, 9).groups[0]
        if group.error_code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    if group.error_code is not ErrorCode.NONE:
        return [f"group: {group.error_code.name}"]
    found = {("plain", one.partition_index): one.committed_offset for one in group.topics[0].partitions}
    if found == truth.committed:
        return []
    if re.search(r"__consumer_offsets-\d+ is damaged|__consumer_offsets-\d+: cut|__consumer_offsets", said):
        return ["committed offsets, told in the log"]
    raise Silent(f"the group has {found} instead of {truth.committed}")


def _judge_writes(client: PlainClient, truth: Truth) -> None:
    """See that the node takes records, and gives no offset twice."""
    for log, end in truth.ends.items():
        answer = produce(client, log[0], batch_of(b"new", key=b"new"), log[1])
        if answer.error_code is ErrorCode.NONE and answer.base_offset < end:
            raise Silent(f"{log} gives offset {answer.base_offset} again, though it ended at {end}")
