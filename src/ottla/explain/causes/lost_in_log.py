"""Records that somebody sent, and that the log does not have, or shows to nobody.

What is not in a log was refused, was acknowledged by too few nodes before its leader changed, was deleted
with its topic, or was compacted. What is there and hidden belongs to a transaction that was aborted.
"""

from collections.abc import Iterator, Mapping

from ottla.explain.answer import Cause, Evidence, Strength, time_text
from ottla.explain.evidence.journal import JournalEvent, JournalView
from ottla.explain.evidence.logs import LogSample
from ottla.explain.evidence.writers import candidates, writers_of
from ottla.model.ids import TopicPartition

Configs = Mapping[str, str | None]

_FINAL = frozenset(
    (
        "CORRUPT_MESSAGE",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "KAFKA_STORAGE_ERROR",
        "MESSAGE_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "POLICY_VIOLATION",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
    )
)
"""Errors after which records are in the log only if their producer sends them again."""
_IN_SECONDS_MAX = 100_000_000_000
"""A time in milliseconds that is less lies before 1973: it is one in seconds."""


def lost_in_log(topic: str, log: LogSample | None, journal: JournalView, configs: Configs) -> Iterator[Cause]:
    """Find what a topic lacks, or shows to nobody."""
    yield from _deleted_with_topic(topic, journal)
    yield from _elected_unclean(topic, journal)
    yield from _acknowledged_by_one(topic, journal)
    yield from _refused(topic, journal)
    if log is not None:
        yield from _aborted(topic, log)
        yield from _compacted(topic, log, configs)
        yield from _deleted_by_time(topic, log, configs)
        yield from _deleted_early(topic, log, journal, configs)
        yield from _tombstones(topic, log, journal, configs)
        yield from _deleted_by_admin(topic, log, journal, configs)


def may_delete(configs: Configs) -> bool:
    """Say whether retention deletes anything of a topic."""
    limits = (configs.get("retention.ms"), configs.get("retention.bytes"))
    return "delete" in (configs.get("cleanup.policy") or "delete") and any(
        limit is not None and not limit.startswith("-") for limit in limits
    )


def _is_of(topic: str, event: JournalEvent) -> bool:
    return str(event.facts["at"]).rpartition("/")[0] == topic


def _deleted_with_topic(topic: str, journal: JournalView) -> Iterator[Cause]:
    gone = list(journal.of("topic-deleted", topic=topic))
    for event in gone[-1:]:
        yield Cause(
            "topic-deleted",
            Strength.PROVED,
            f"topic {topic} was deleted at {time_text(event.at_ms)}, with all records that it had then",
            (Evidence("the topic was deleted", f"journal {event.place}", event.at_ms),),
            ("restore the records from their source: the log has none of them",),
            weight=9,
        )


def _elected_unclean(topic: str, journal: JournalView) -> Iterator[Cause]:
    for event in journal.of("isr-changed"):
        before, after = event.facts["before"], event.facts["isr"]
        if not _is_of(topic, event) or not before or not after or set(before) & set(after):
            continue
        yield Cause(
            "unclean-election",
            Strength.PROVED,
            f"{event.facts['at']} got a leader that was not in sync, at {time_text(event.at_ms)}: what only "
            f"{_nodes(before)} had is not in the log any more",
            (
                Evidence(
                    f"{_nodes(before)} had everything, and now counts {_nodes(after)}",
                    f"journal {event.place}",
                    event.at_ms,
                ),
            ),
            (
                "set unclean.leader.election.enable=false, and elect with --unclean only what may be lost",
                "use three replicas and min.insync.replicas=2",
            ),
            weight=8.5,
        )
        return


def _nodes(ids: list[int]) -> str:
    return ("node " if len(ids) == 1 else "nodes ") + ", ".join(map(str, ids))


def _acknowledged_by_one(topic: str, journal: JournalView) -> Iterator[Cause]:
    """Find writes that did not wait for replicas, by somebody who wrote when the leader changed."""
    for event in journal.of("writes"):
        acks = event.facts.get("acks")
        places = {place for place in event.facts["at"] if place.rpartition("/")[0] == topic}
        if acks not in (0, 1) or not places:
            continue
        client, since_ms = event.facts["client"], event.facts.get("since", event.at_ms)
        seen = Evidence(
            f"{client} writes to {', '.join(sorted(places))} with acks={acks}",
            f"journal {event.place}",
            event.at_ms,
        )
        for change in journal.of("leader-changed"):
            if change.facts["at"] in places and change.facts["before"] >= 0 and change.at_ms >= since_ms:
                yield Cause(
                    "acknowledged-by-one",
                    Strength.LIKELY,
                    f"{change.facts['at']} changed its leader at {time_text(change.at_ms)} while {client} "
                    f"wrote with acks={acks}: what only the old leader had is lost, though it "
                    + ("was acknowledged" if acks else "looked sent"),
                    (
                        seen,
                        Evidence(
                            f"node {change.facts['leader']} leads after node {change.facts['before']}",
                            f"journal {change.place}",
                            change.at_ms,
                        ),
                    ),
                    ("set acks=all: then a write is acknowledged when the in-sync replicas have it",),
                    weight=7,
                )
                return
        if acks == 0:
            yield Cause(
                "nobody-acknowledged",
                Strength.POSSIBLE,
                f"{client} writes with acks=0: it does not learn which of its records were not written",
                (seen,),
                ("set acks=all",),
                weight=3,
            )
            return


def _refused(topic: str, journal: JournalView) -> Iterator[Cause]:
    # A refusal does not name its topic, and many clients have the name that their library gave them.
    topics: dict[str, set[str]] = {}
    for writer in writers_of(journal):
        topics.setdefault(writer.client, set()).update(at.topic for at in writer.places)
    clients = {event.facts["producer"]: event.facts["client"] for event in journal.of("producer-seen")}
    for event in journal.of("producer-wrote"):
        if (client := clients.get(event.facts["producer"])) is not None:
            topics.setdefault(client, set()).add(event.facts["at"].rpartition("/")[0])
    # The newest is the one that somebody asks about.
    for event in reversed([*journal.of("request-refused", api="produce")]):
        if event.facts["error"] not in _FINAL:
            continue
        client = event.subject.removeprefix("client/").rpartition("@")[0]
        if topic not in topics.get(client, {topic}):
            # It has written elsewhere, and never here.
            continue
        yield Cause(
            "produce-refused",
            Strength.LIKELY if topics.get(client) == {topic} else Strength.POSSIBLE,
            f"{event.facts['count']} batches of {client} were refused with {event.facts['error']}, of {topic}"
            " or of another topic: their records are in no log unless they were sent again",
            (
                Evidence(
                    f"produce got {event.facts['error']}, {event.facts['count']} times",
                    f"journal {event.place}",
                    event.at_ms,
                ),
            ),
            ("look at what the application does with errors of send: some never look at them",),
            weight=6,
        )
        return


def _aborted(topic: str, log: LogSample) -> Iterator[Cause]:
    """Find records of aborted transactions that nobody has written again."""
    aborted = log.aborted()
    if not aborted:
        return
    hidden = [item for item in log.records if (item.where, item.batch.base_offset) in aborted]
    shown = {
        (item.key, item.value) for item in log.records if (item.where, item.batch.base_offset) not in aborted
    }
    gone = [item for item in hidden if item.where.topic == topic and (item.key, item.value) not in shown]
    if not gone:
        return
    item = gone[-1]
    yield Cause(
        "transaction-aborted",
        Strength.PROVED,
        f"{len(gone)} records of {topic} are of transactions that were aborted, and were not written again: "
        "readers of committed records never get them",
        (Evidence(f"{item.place}, by producer {item.batch.producer_id}", "the log", item.timestamp),),
        ("look for what made the producer abort, and whether it tries again", f"ottla trace {item.place}"),
        weight=6.5,
    )


def _compacted(topic: str, log: LogSample, configs: Configs) -> Iterator[Cause]:
    if "compact" not in (configs.get("cleanup.policy") or ""):
        return
    removed = 0
    ends: dict[TopicPartition, int] = {}
    example: tuple[TopicPartition, int] | None = None
    for batch in sorted(log.batches, key=lambda one: (one.where, one.base_offset)):
        if batch.where.topic != topic or batch.is_control:
            ends[batch.where] = batch.last_offset + 1
            continue
        gap = batch.base_offset - ends.get(batch.where, batch.base_offset)
        gap += batch.last_offset - batch.base_offset + 1 - batch.records
        if gap > 0:
            removed += gap
            example = example or (batch.where, batch.base_offset)
        ends[batch.where] = batch.last_offset + 1
    if example is not None:
        yield Cause(
            "compacted",
            Strength.PROVED,
            f"compaction has removed {removed} offsets among the records of {topic} that were read here: it "
            "keeps the newest record of each key, and no tombstones",
            (Evidence(f"offsets are missing at {example[0]}@{example[1]}", "the log"),),
            ("use cleanup.policy=delete if each record counts, and not only the newest of a key",),
            weight=4,
        )


def _deleted_by_time(topic: str, log: LogSample, configs: Configs) -> Iterator[Cause]:
    if not may_delete(configs) or (configs.get("retention.ms") or "-1").startswith("-"):
        return
    wrong = [
        item
        for item in log.records
        if item.where.topic == topic
        and not item.batch.has_append_time
        and 0 <= item.timestamp < _IN_SECONDS_MAX
    ]
    if wrong:
        yield Cause(
            "deleted-by-timestamp",
            Strength.LIKELY,
            f"{len(wrong)} records of {topic} say that they are of {time_text(wrong[-1].timestamp)[:10]}, "
            f"older than retention.ms={configs['retention.ms']}: retention deletes them, read or not; their "
            "times are in seconds, where Kafka has milliseconds",
            (Evidence(f"{wrong[-1].place} has timestamp {wrong[-1].timestamp}", "the log"),),
            ("let the producer set milliseconds, or set message.timestamp.type=LogAppendTime",),
            weight=7.5,
        )


def _deleted_early(topic: str, log: LogSample, journal: JournalView, configs: Configs) -> Iterator[Cause]:
    """Find records that are gone, though they were written later than retention reaches.

    Retention goes by the times that records carry. So only those times explain it, or an administrator.
    """
    limit = configs.get("retention.ms") or "-1"
    by_size = not (configs.get("retention.bytes") or "-1").startswith("-")
    if not may_delete(configs) or limit.startswith("-") or by_size or journal.span_ms is None:
        return
    now_ms = journal.span_ms[1]
    for where, start in sorted(log.starts.items()):
        since = _not_there_before(journal, where, start - 1) if where.topic == topic and start > 0 else None
        if since is None or now_ms - since.at_ms >= int(limit) or deleting(journal, where, start) is not None:
            continue
        yield Cause(
            "deleted-by-timestamp",
            Strength.LIKELY,
            f"what {where} had before offset {start} was written after {time_text(since.at_ms)} and is "
            f"deleted already, though retention.ms={limit}: retention goes by the times that records carry, "
            "so these carried times that are long past (in seconds instead of milliseconds, say), or an "
            "administrator has deleted them",
            (
                Evidence(f"the log begins at {start}", f"ottla topic describe {topic}"),
                Evidence(f"offset {start - 1} was not there yet", f"journal {since.place}", since.at_ms),
            ),
            (
                "look at the timestamps that the producer sets: they are milliseconds since 1970",
                "or set message.timestamp.type=LogAppendTime for the topic",
            ),
            weight=7.4,
        )
        return


def _not_there_before(journal: JournalView, where: TopicPartition, offset: int) -> JournalEvent | None:
    """Return the last event that shows that an offset was not written yet."""
    place, found = f"{where.topic}/{where.partition}", None
    for event in journal.of("appended-at", "topic-created"):
        if event.kind == "topic-created":
            found = event if event.facts["topic"] == where.topic else found
        elif place in event.facts["ends"]:
            if event.facts["ends"][place] > offset:
                return found
            found = event
    return None


def _tombstones(topic: str, log: LogSample, journal: JournalView, configs: Configs) -> Iterator[Cause]:
    """Find keys of a compacted topic whose newest record has no value: compaction deletes them."""
    if "compact" not in (configs.get("cleanup.policy") or ""):
        return
    newest = {(item.where, item.key): item for item in log.records if item.where.topic == topic}
    gone = [item for item in newest.values() if item.value is None and item.key is not None]
    if not gone:
        return
    item, names = gone[-1], journal.producer_names()
    known = writers_of(journal)
    writers = {one.name for found in gone[-50:] for one in candidates(journal, known, found)}
    writers |= {names[one.batch.producer_id] for one in gone if one.batch.producer_id in names}
    yield Cause(
        "deleted-by-tombstone",
        Strength.PROVED,
        f"{len(gone)} of {len(newest)} keys of {topic} that were read here end with a record without a value:"
        " that deletes a key of a compacted topic",
        (
            Evidence(f"{item.place} has no value", "the log", item.timestamp),
            *(Evidence(f"{name} may have written them", "the journal") for name in sorted(writers)[:3]),
        ),
        (
            f"look at the newest of them: `ottla trace {item.place}`",
            "write the values again; look for a producer whose value was empty by mistake",
        ),
        weight=5,
    )


def deleting(journal: JournalView, where: TopicPartition, start: int) -> JournalEvent | None:
    """Return by which request a log has lost what was before an offset, if the journal has it."""
    found = None
    for event in journal.of("records-deleted", at=f"{where.topic}/{where.partition}"):
        if event.facts["before"] >= start:
            found = event
    return found


def _deleted_by_admin(topic: str, log: LogSample, journal: JournalView, configs: Configs) -> Iterator[Cause]:
    for where, start in sorted(log.starts.items()):
        if where.topic != topic or start <= 0:
            continue
        request = deleting(journal, where, start)
        if request is None and (not configs or may_delete(configs)):
            continue
        begins = Evidence(f"the log begins at {start}", f"ottla topic describe {topic}")
        facts = {} if request is None else request.facts
        yield Cause(
            "deleted-by-admin",
            Strength.PROVED,
            f"{where} begins at offset {start}, and retention deletes nothing of it: an administrator "
            "has deleted what was before (DeleteRecords)"
            if request is None
            else f"{where} begins at offset {start}: {facts['client'] or 'a client'} at {facts['host']} has "
            f"deleted what was before, at {time_text(request.at_ms)} (DeleteRecords)",
            (begins,)
            if request is None
            else (
                begins,
                Evidence(
                    f"records before {facts['before']} were deleted",
                    f"journal {request.place}",
                    request.at_ms,
                ),
            ),
            ("look at who may delete records: `ottla acl list`",),
            weight=5 if request is None else 7.6,
        )
        return
