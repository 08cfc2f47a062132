"""The story of a record: facts in the order of their times, each with its source.

    produced -> appended -> visible -> delivered to each group -> committed by each group -> delivered again
    -> read by a pipeline, which wrote something -> gone, or going

What is known is a range where only samples are known: a record was appended between two looks of the journal.
The waits between the steps are the point, so the longest is said first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import BrokerError, ClientError
from ottla.explain.access import Access
from ottla.explain.answer import duration_text, time_text
from ottla.explain.causes.absent import departure
from ottla.explain.evidence.group_history import GroupHistory, read_group_history
from ottla.explain.evidence.journal import JournalEvent, JournalView, read_journal
from ottla.explain.evidence.logs import BatchFacts, RecordFacts, partitions_of, read_batches, sample_log
from ottla.explain.lag.outlook import Retention, retention_of
from ottla.explain.outputs import pipeline_steps
from ottla.explain.places import SegmentPlace, find_place
from ottla.explain.steps import Step
from ottla.model.ids import TopicPartition
from ottla.model.ledger_groups import is_ledger
from ottla.model.shown import one_line
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Story:
    """A record with everything that is known to have happened to it."""

    record: RecordFacts
    steps: tuple[Step, ...]
    missing: tuple[str, ...]
    journal_ms: tuple[int, int] | None = None
    """Of which time the journal tells that was read, if there is one."""

    def waits(self) -> list[tuple[str, int]]:
        """Return how long the record waited for each step, the longest first.

        A group waits for nobody but the log: its first step follows the one in which the record became
        visible, and the others follow its own.
        """
        last: dict[str, Step] = {}
        shared: Step | None = None
        found = []
        for step in self.steps:
            if step.at_ms is None or step.kind == "going":
                continue
            before = last.get(step.actor, shared)
            if before is not None:
                wait = step.at_ms - (before.at_ms or 0)
                whose = "" if step.actor == "log" else f" by {step.actor}"
                found.append((f"from {before.kind} to {step.kind}{whose}", max(wait, 0)))
            last[step.actor] = step
            if step.kind in ("produced", "appended", "visible"):
                shared = step
        return sorted(found, key=lambda item: -item[1])

    def as_json(self) -> dict[str, Any]:
        """Return the story for programs."""
        record = self.record
        return {
            "record": record.place,
            "key": _bytes(record.key),
            "value": _bytes(record.value),
            "timestamp_ms": record.timestamp,
            "batch": record.batch._replace(where=str(record.where))._asdict(),  # type: ignore[arg-type]
            "steps": [
                {
                    "at_ms": step.at_ms,
                    "until_ms": step.until_ms,
                    "kind": step.kind,
                    "actor": step.actor,
                    "text": step.text,
                    "source": step.source,
                }
                for step in self.steps
            ],
            "waits": [{"between": name, "ms": ms} for name, ms in self.waits()],
            "missing": list(self.missing),
            "journal_ms": None if self.journal_ms is None else list(self.journal_ms),
        }

    def render(self) -> str:
        """Return the story for people."""
        lines = [f"{self.record.place}  key {_bytes(self.record.key)}"]
        waits = self.waits()
        if waits and waits[0][1] > 0:
            lines.append(f"longest wait: {duration_text(waits[0][1])}, {waits[0][0]}")
        for step in self.steps:
            when = " " * 24 if step.at_ms is None else time_text(step.at_ms)
            lines.append(f"  {when}  {step.kind:10} {step.text}  [{step.source}]")
        if self.journal_ms is not None:
            first_ms, last_ms = self.journal_ms
            lines.append(f"the journal covers {time_text(first_ms)} to {time_text(last_ms)}")
        lines += [f"not known: {text}" for text in self.missing]
        return "\n".join(map(one_line, lines))


async def find_record(access: Access, where: TopicPartition, offset: int) -> RecordFacts:
    """Find a record by its address."""
    partitions = await partitions_of(access, [where.topic])
    if where not in partitions:
        # It says why not.
        await access.admin.topics.describe(where.topic)
        raise ClientError(
            f"{where.topic} has no partition {where.partition}, only 0 to {len(partitions) - 1}"
        )
    async for _, records in read_batches(access, where, offset, offset + 1):
        for record in records:
            if record.offset == offset:
                return record
    raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{where} has no record at offset {offset}")


async def search_records(
    access: Access, topic: str, key: bytes | None, header: tuple[str, bytes] | None, text: bytes | None
) -> list[RecordFacts]:
    """Find records by key, by a header or by a text in their value, among the newest of a topic."""
    partitions = await partitions_of(access, [topic])
    if not partitions:
        # It says why not.
        await access.admin.topics.describe(topic)
    sample = await sample_log(access, partitions)
    return [
        record
        for record in sample.records
        if (key is None or record.key == key)
        and (header is None or header in record.headers)
        and (text is None or text in (record.value or b""))
    ]


async def tell_story(
    access: Access, record: RecordFacts, checkpoints: Path | None = None, data: Path | None = None
) -> Story:
    """Gather what is known of a record. `data` is a data directory of a node that has a replica."""
    journal = await read_journal(access)
    place = None if data is None else find_place(data, record)
    steps = [*_produced(record, journal), *_appended(record, journal, place)]
    steps += _replicated(record, journal, await _replicas(access, record))
    end, is_open = await _transaction_end(access, record)
    steps += _visible(end, is_open)
    for item in await access.admin.groups.list():
        if is_ledger(item.group_id) or item.type == "share":
            continue
        history = await read_group_history(access, item.group_id)
        steps += _read_by(record, item.group_id, history, journal)
    if checkpoints is not None:
        steps += await pipeline_steps(access, record, checkpoints)
    steps += await _going(access, record)
    missing = []
    if not journal.exists:
        missing.append(
            "who produced it and which member got it when: the cluster has no journal, or you may not read "
            "it (Ottla writes one)"
        )
    ordered = sorted(steps, key=lambda step: _rank(record, step))
    return Story(record, tuple(ordered), tuple(missing), journal.span_ms)


_ORDER = (
    "produced",
    "appended",
    "replicated",
    "visible",
    "aborted",
    "delivered",
    "committed",
    "again",
    "pipeline",
    "wrote",
    "going",
)


def _rank(record: RecordFacts, step: Step) -> tuple[int, int]:
    """Return where a step belongs. One without a time belongs where its kind does."""
    at_ms = step.at_ms
    if at_ms is None:
        at_ms = record.batch.max_timestamp if step.kind in ("produced", "appended") else 1 << 62
    return at_ms, _ORDER.index(step.kind)


def _produced(record: RecordFacts, journal: JournalView) -> Iterator[Step]:
    batch = record.batch
    names = journal.producer_names()
    if batch.producer_id < 0:
        who, actor = "a producer without an id: no idempotence", "producer"
    else:
        known = names.get(batch.producer_id)
        who = f"producer {batch.producer_id}, epoch {batch.producer_epoch}" + (f" ({known})" if known else "")
        actor = known.partition(" at ")[0] if known else f"producer {batch.producer_id}"
    if batch.has_append_time:
        yield Step(None, "produced", f"by {who}; its own time is not kept (LogAppendTime)", "the log", actor)
    else:
        yield Step(record.timestamp, "produced", f"by {who}", "the log", actor)


def _appended(record: RecordFacts, journal: JournalView, place: SegmentPlace | None) -> Iterator[Step]:
    batch = record.batch
    text = (
        f"in a batch of {batch.records} records and {batch.size_bytes} bytes ({batch.codec}), offsets "
        f"{batch.base_offset} to {batch.last_offset}, leader epoch {batch.leader_epoch}"
    )
    if batch.is_transactional:
        text += ", in a transaction"
    if place is not None:
        text += f", in {place.path} from byte {place.position} to {place.position + batch.size_bytes - 1}"
    before = None
    for event in journal.of("appended-at"):
        end = event.facts.get("ends", {}).get(_name(record))
        if end is None:
            continue
        if end > record.offset:
            begin = max(before or 0, record.timestamp if not batch.has_append_time else 0)
            yield Step(
                min(begin or event.at_ms, event.at_ms),
                "appended",
                f"{text}; at {time_text(event.at_ms)} at the latest",
                f"journal {event.place}",
                "log",
                event.at_ms,
            )
            return
        before = event.at_ms
    at_ms = batch.max_timestamp if batch.has_append_time else None
    yield Step(at_ms, "appended", text, "the log", "log")


def _replicated(record: RecordFacts, journal: JournalView, replicas: int) -> Iterator[Step]:
    """Say when all replicas in sync had it: when the high watermark had passed it."""
    if replicas < 2:
        return
    name = _name(record)
    for event in journal.of("appended-at"):
        end = event.facts.get("ends", {}).get(name)
        if end is not None and event.facts.get("high", {}).get(name, end) > record.offset:
            yield Step(
                event.at_ms,
                "replicated",
                f"to all of its {replicas} replicas that were in sync, at this time at the latest",
                f"journal {event.place}",
                "log",
            )
            return


async def _replicas(access: Access, record: RecordFacts) -> int:
    try:
        described = await access.admin.topics.describe(record.where.topic)
    except ClientError:
        return 0
    return max(
        (len(one.replicas) for one in described.partitions if one.partition == record.where.partition),
        default=0,
    )


def _name(record: RecordFacts) -> str:
    return f"{record.where.topic}/{record.where.partition}"


async def _transaction_end(access: Access, record: RecordFacts) -> tuple[BatchFacts | None, bool]:
    """Find the marker that ended the record's transaction."""
    batch = record.batch
    if not batch.is_transactional:
        return None, False
    ends = await access.admin.offsets.latest([record.where])
    async for other, _ in read_batches(access, record.where, record.offset, ends[record.where].offset):
        if other.is_control and other.producer_id == batch.producer_id:
            return other, False
    return None, True


def _visible(end: BatchFacts | None, is_open: bool) -> Iterator[Step]:
    if is_open:
        yield Step(
            None,
            "visible",
            "only to readers of uncommitted records: its transaction is open",
            "the log",
            "log",
        )
    elif end is not None:
        yield Step(
            end.max_timestamp,
            "visible",
            f"its transaction ended with the marker at offset {end.base_offset}",
            "the log",
            "log",
        )


def _read_by(
    record: RecordFacts, group_id: str, history: GroupHistory, journal: JournalView
) -> Iterator[Step]:
    commits = list(_commits_past(record, group_id, history))
    first_commit_ms = commits[0].at_ms if commits else None
    is_first = True
    for client, event in _deliveries(record, history, journal):
        at_ms = event.at_ms if not is_first else min(event.at_ms, first_commit_ms or event.at_ms)
        position = event.positions()[record.where]
        text = f"to {client} of group {group_id}, at this time at the latest: it fetches from {position}"
        if not is_first:
            text += _why_again(journal, group_id, event.at_ms)
        yield Step(at_ms, "delivered" if is_first else "again", text, f"journal {event.place}", group_id)
        is_first = False
    yield from commits


def _deliveries(
    record: RecordFacts, history: GroupHistory, journal: JournalView
) -> Iterator[tuple[str, JournalEvent]]:
    """Give the members that got the record, each with the first event that shows it."""
    where, offset = record.where, record.offset
    begins: dict[str, int] = {}
    for generation in history.generations:
        holder = generation.holder(where)
        if holder is not None and holder.client_id not in begins:
            commit = history.committed_at(where, generation.at_ms)
            begins[holder.client_id] = 0 if commit is None or commit.offset is None else commit.offset
    last: dict[str, int] = {}
    for event in journal.of("fetch-position", "fetch-stopped"):
        client, position = event.facts.get("client", ""), event.positions().get(where)
        if position is None or client not in begins:
            continue
        if last.get(client, begins[client]) <= offset < position:
            yield client, event
        last[client] = position


def _why_again(journal: JournalView, group_id: str, at_ms: int) -> str:
    left = [event for event in journal.of("member-left", group=group_id) if event.at_ms <= at_ms]
    return f"; before that {departure(left[-1]).text}" if left else ""


def _commits_past(record: RecordFacts, group_id: str, history: GroupHistory) -> Iterator[Step]:
    where, offset = record.where, record.offset
    before: int | None = None
    for commit in history.commits:
        if commit.where != where or commit.offset is None:
            continue
        if commit.offset > offset and (before is None or before <= offset):
            generations = [one for one in history.generations if one.at_ms <= commit.at_ms]
            holder = generations[-1].holder(where) if generations else None
            by = "" if holder is None else f" by {holder.client_id}"
            yield Step(
                commit.at_ms,
                "committed",
                f"group {group_id} has committed {commit.offset}{by}",
                f"__consumer_offsets@{commit.log_offset}",
                group_id,
            )
        before = commit.offset


async def _going(access: Access, record: RecordFacts) -> Sequence[Step]:
    resource = ConfigResource(ResourceType.TOPIC, record.where.topic)
    try:
        configs = (await access.admin.configs.describe_many([resource], synonyms=False))[resource]
    except ClientError:
        return ()
    values = {name: config.value for name, config in configs.items()}
    retention: Retention = retention_of(values)
    steps = []
    if retention.time_ms is not None:
        steps.append(
            Step(
                record.batch.max_timestamp + retention.time_ms,
                "going",
                "retention may delete its segment from now on (retention.ms)",
                f"ottla config get topic {record.where.topic}",
                "log",
            )
        )
    if "compact" in (values.get("cleanup.policy") or "") and record.key is not None:
        steps.append(
            Step(
                None,
                "going",
                "compaction deletes it once a newer record has its key",
                f"ottla config get topic {record.where.topic}",
                "log",
            )
        )
    return steps


def _bytes(data: bytes | None) -> str | None:
    return None if data is None else data[:200].decode(errors="replace")
