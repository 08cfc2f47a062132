"""Did a deploy change what the key is? Then each key is in one partition, and each thing in two."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ottla.explain.answer import Cause, Evidence, Strength, time_text
from ottla.explain.causes.going_back import AHEAD_MS
from ottla.explain.causes.names import key_text, writer_name
from ottla.explain.evidence.cases import TopicCase
from ottla.explain.evidence.logs import RecordFacts

_FORM_MIN = 5


def keys_changed(case: TopicCase, key: bytes | None) -> Iterator[Cause]:
    """Find a moment at which keys took another form, and name the same things as before."""
    by_form: dict[str, list[RecordFacts]] = defaultdict(list)
    for record in case.sample.records:
        if record.key is not None:
            by_form[_form(record.key)].append(record)
    both = sorted(by_form.values(), key=len)[-2:]
    if len(both) < 2 or sum(map(len, both)) < 0.9 * sum(map(len, by_form.values())):
        return
    old, new = sorted(both, key=lambda some: min(item.timestamp for item in some))
    until, since = max(item.timestamp for item in old), min(item.timestamp for item in new)
    if min(len(old), len(new)) < _FORM_MIN or until > since + AHEAD_MS:
        return
    moved = _moved(old, new)
    if not moved or (key is not None and key not in (one.key for pair in moved for one in pair)):
        return
    names = case.journal.producer_names()
    before, after = moved[0]
    yield Cause(
        "keys-changed",
        Strength.LIKELY,
        f"the keys of {case.topic} took another form between {time_text(until)} and {time_text(since)}: "
        f"{key_text(before.key)} is {key_text(after.key)} since, in another partition: nothing orders them",
        (
            Evidence(
                f"{before.place} by {writer_name(before, names)} has key {key_text(before.key)}",
                "the log",
                until,
            ),
            Evidence(
                f"{after.place} by {writer_name(after, names)} has key {key_text(after.key)}",
                "the log",
                since,
            ),
            Evidence(f"{len(moved)} keys have moved like this one", "the log"),
        ),
        (
            "look for a deploy of the producer at this time",
            "let consumers finish what is under the old keys before they go on with the new ones",
        ),
        weight=6,
    )


def _form(key: bytes) -> str:
    """Return what a key looks like: each run of digits as 0, each run of letters as a."""
    text = key.decode(errors="replace")[:80]
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


def _moved(old: Sequence[RecordFacts], new: Sequence[RecordFacts]) -> list[tuple[RecordFacts, RecordFacts]]:
    """Pair keys of two forms that have the same number or name in them, and lie in different partitions."""
    by_core: dict[str, RecordFacts] = {}
    for item in old:
        by_core[_core(item.key)] = item
    found: dict[bytes | None, tuple[RecordFacts, RecordFacts]] = {}
    for item in new:
        before = by_core.get(_core(item.key))
        if before is not None and before.where != item.where:
            found.setdefault(item.key, (before, item))
    return list(found.values())


def _core(key: bytes | None) -> str:
    """Return what tells a key from its like: its last number, or its last word."""
    text = (key or b"").decode(errors="replace").lower()
    parts = re.findall(r"\d+", text) or re.findall(r"[^\W\d_]+", text) or [text]
    return str(parts[-1])
