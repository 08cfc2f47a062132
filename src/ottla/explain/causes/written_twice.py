"""Which records are in the log twice? Who has written them?

Equal values without a key are not yet duplicates. Where producers have ids, the log tells them apart; where
they have none, the journal knows the connections.
"""

from collections.abc import Iterator

from ottla.explain.answer import Cause, Evidence, Strength, duration_text
from ottla.explain.evidence.journal import JournalView
from ottla.explain.evidence.logs import LogSample, RecordFacts
from ottla.explain.evidence.writers import Writer, candidates, writers_of

_BYTES_MIN = 4
"""Keys and values that are shorter together are the same by chance, or on purpose."""
_REPEATED_SHARE_MAX = 0.5
"""If more records than this are repeated, repetition may be what the topic is for."""
_COPIES_MAX = 10
"""Nobody runs a program so often by mistake: values that are there more often are said again on purpose."""


Pair = tuple[RecordFacts, RecordFacts]


def written_twice(
    sample: LogSample, journal: JournalView, isolations: frozenset[int] | None = None
) -> Iterator[Cause]:
    """Look for records that are there twice; for a group, if its `isolations` are given."""
    names = journal.producer_names()
    aborted = sample.aborted()
    pairs: list[Pair] = []
    of_aborted: list[Pair] = []
    for pair in _repeated(sample):
        is_aborted = any((one.where, one.batch.base_offset) in aborted for one in pair)
        (of_aborted if is_aborted else pairs).append(pair)
    if of_aborted:
        yield from _aborted_copies(of_aborted, isolations, names)
    bare = [pair for pair in pairs if pair[0].key is None and not _is_retry(*pair)]
    pairs = [pair for pair in pairs if pair[0].key is not None or _is_retry(*pair)]
    if bare and not pairs and isolations is None:
        yield _only_equal(bare, sample, names)
    if not pairs:
        return
    if len(pairs) > len(sample.records) * _REPEATED_SHARE_MAX:
        if isolations is None:
            yield from _mostly_repeated(pairs, sample, journal, names)
        return
    retried = [pair for pair in pairs if _is_retry(*pair)]
    if retried:
        first, again = retried[0]
        yield Cause(
            "produced-twice-by-retry",
            Strength.PROVED,
            f"{len(retried)} records are in the log twice, batch by batch with the same create times: a "
            "producer without idempotence sent a batch again that had been written",
            (
                Evidence(
                    f"{first.place} and {again.place} are the same, with the same create time, and have no "
                    "producer id",
                    "the log",
                    again.timestamp,
                ),
            ),
            ("set enable.idempotence=true for the producer",),
            weight=7,
        )
        return
    writers = writers_of(journal)
    others = {pair: _two_writers(pair, journal, writers) for pair in pairs}
    by_two = [pair for pair in pairs if _is_by_another(*pair) or others[pair]]
    by_one = [pair for pair in pairs if pair not in by_two]
    if by_two:
        yield _by_two_producers(by_two, others[by_two[0]], names, len(by_two) / (len(pairs) + 1))
    if by_one:
        yield _by_one_producer(by_one, journal, writers, names, len(by_one) / (len(pairs) + 1))


def _same(pair: Pair, names: dict[int, str]) -> Evidence:
    first, again = pair
    return Evidence(
        f"{first.place} ({_writer(first, names)}) and {again.place} ({_writer(again, names)}) have the same "
        f"key and value, {duration_text(abs(again.timestamp - first.timestamp))} apart",
        "the log",
        again.timestamp,
    )


def _aborted_copies(
    pairs: list[Pair], isolations: frozenset[int] | None, names: dict[int, str]
) -> Iterator[Cause]:
    """Say that one of each two records is of a transaction that was aborted, if the group may see it."""
    if isolations and 0 not in isolations:
        return
    is_known = isolations is None or 0 in isolations
    who = (
        "readers at read_uncommitted get both"
        if isolations is None
        else "the group reads at read_uncommitted, and gets both"
    )
    yield Cause(
        "aborted-records-read",
        Strength.PROVED if is_known else Strength.LIKELY,
        f"{len(pairs)} records are in the log twice, once of them in a transaction that was aborted: {who}",
        (
            _same(pairs[0], names),
            Evidence("a marker in the log says that the transaction of the one was aborted", "the log"),
            *([Evidence("members fetch with isolation 0", "the journal")] if isolations else []),
        ),
        ("set isolation.level=read_committed for the consumer",),
        weight=8.1,
    )


def _only_equal(pairs: list[Pair], sample: LogSample, names: dict[int, str]) -> Cause:
    return Cause(
        "equal-values",
        Strength.POSSIBLE,
        f"{len(pairs)} of {len(sample.records)} records have the value of an earlier one, and no key: "
        "whether they are duplicates, or the same was said twice, the log does not show",
        (_same(pairs[0], names),),
        ("give records a key or an id, so that one can tell",),
        weight=1,
    )


def _mostly_repeated(
    pairs: list[Pair], sample: LogSample, journal: JournalView, names: dict[int, str]
) -> Iterator[Cause]:
    """Say that most records are copies: by one who says the same again, or by several runs of one program."""
    writers = writers_of(journal)
    copies = len(sample.records) / max(len(sample.records) - len(pairs), 1)
    if copies > _COPIES_MAX:
        return
    is_by_others = all(_is_by_another(*pair) or _two_writers(pair, journal, writers) for pair in pairs)
    who = {one.name for record in pairs[0] for one in candidates(journal, writers, record)}
    yield Cause(
        "produced-by-two-producers" if is_by_others else "equal-values",
        Strength.LIKELY if is_by_others else Strength.POSSIBLE,
        f"{len(pairs)} of {len(sample.records)} records have the key and the value of an earlier one: "
        + (
            "each of another producer, or of another connection, so that several runs have written the same"
            if is_by_others
            else "the topic repeats values on purpose, or several runs have written the same"
        ),
        (
            _same(pairs[0], names),
            *(Evidence(f"{name} may have written them", "the journal") for name in sorted(who)[:3]),
        ),
        ("use a transactional.id, and send from where the last transaction has ended",),
        weight=4,
    )


def _two_writers(
    pair: Pair, journal: JournalView, writers: tuple[Writer, ...]
) -> tuple[Writer, Writer] | None:
    """Return the two connections that wrote two records without producer ids, if there is no other way."""
    if pair[0].batch.producer_id >= 0 or pair[1].batch.producer_id >= 0:
        return None
    one, other = (candidates(journal, writers, record) for record in pair)
    if len(one) != 1 or not other or one[0] in other:
        return None
    return one[0], other[0]


def _by_two_producers(
    pairs: list[Pair], writers: tuple[Writer, Writer] | None, names: dict[int, str], share: float
) -> Cause:
    evidence = [_same(pairs[0], names)]
    who = "another producer: it was restarted"
    if writers is not None:
        evidence += [
            Evidence(f"{one.name} wrote to {pairs[0][0].where}", f"journal {one.last.place}", one.last.at_ms)
            for one in writers
        ]
        first, again = writers
        who = (
            f"{again.client}, which connected again: it ran a second time"
            if first.client == again.client
            else f"another producer, {again.name} after {first.name}: it was restarted"
        )
    return Cause(
        "produced-by-two-producers",
        Strength.LIKELY,
        f"{len(pairs)} records are in the log twice: they were written again by {who} and sent again what "
        "was written already, or two run at once",
        tuple(evidence),
        ("use a transactional.id, and send from where the last transaction has ended",),
        weight=5 + share,
    )


def _by_one_producer(
    pairs: list[Pair],
    journal: JournalView,
    writers: tuple[Writer, ...],
    names: dict[int, str],
    share: float,
) -> Cause:
    """Say that one producer wrote twice, if it is one: with an id, or the only connection there was."""
    first, again = pairs[0]
    is_one = first.batch.producer_id >= 0
    evidence = [_same(pairs[0], names)]
    sender = "the same producer has sent them twice"
    if not is_one:
        there = [candidates(journal, writers, record) for record in pairs[0]]
        is_one = len(there[0]) == 1 and there[0] == there[1]
        clients = {one.name for some in there for one in some}
        if not is_one and len(clients) == 1 and all(there):
            # It has connected again in between. Nobody else has written there.
            is_one = True
            sender = (
                f"{clients.pop()} has sent them again, "
                f"{duration_text(abs(again.timestamp - first.timestamp))} later, and nobody else wrote there"
            )
        evidence += [
            Evidence(f"{one.name} writes to {first.where}", f"journal {one.first.place}", one.first.at_ms)
            for one in there[0][:3]
        ]
    return Cause(
        "produced-twice-by-application",
        Strength.LIKELY if is_one else Strength.POSSIBLE,
        f"{len(pairs)} records are in the log twice: "
        + (
            sender
            if is_one
            else "their producers have no ids, so it is not known whether one or two have sent them"
        ),
        tuple(evidence),
        (
            "look whether the application sends a record again itself, after an error say",
            "set enable.idempotence=true: then the log tells producers apart",
        ),
        weight=5 + share,
    )


def _repeated(sample: LogSample) -> Iterator[tuple[RecordFacts, RecordFacts]]:
    """Give records with the same key, value and headers, each with the one before it."""
    seen: dict[tuple[bytes | None, bytes | None, str], RecordFacts] = {}
    for record in sample.records:
        if record.value is None or len(record.key or b"") + len(record.value) < _BYTES_MIN:
            continue
        key = (record.key, record.value, repr(record.headers))
        before = seen.get(key)
        if before is not None:
            yield before, record
        seen[key] = record


def _is_retry(first: RecordFacts, again: RecordFacts) -> bool:
    return (
        first.where == again.where
        and first.timestamp == again.timestamp
        and first.batch.producer_id == again.batch.producer_id == -1
        and first.batch.base_offset != again.batch.base_offset
        and (first.batch.records, first.batch.base_timestamp, first.batch.max_timestamp)
        == (again.batch.records, again.batch.base_timestamp, again.batch.max_timestamp)
    )


def _is_by_another(first: RecordFacts, again: RecordFacts) -> bool:
    one, other = first.batch, again.batch
    return (one.producer_id, one.producer_epoch) != (other.producer_id, other.producer_epoch)


def _writer(record: RecordFacts, names: dict[int, str]) -> str:
    producer_id = record.batch.producer_id
    if producer_id < 0:
        return "a producer without an id"
    return f"producer {producer_id}" + (f", {names[producer_id]}" if producer_id in names else "")
