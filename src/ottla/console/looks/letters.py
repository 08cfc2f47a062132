"""Dead letters: why records of a topic were set aside, as their headers say.

Connect, queues and pipelines write such headers. Of these, the reason and where the record was are read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.console.looks.records import StoredRecord
from ottla.records.codec import Headers

READ_MAX: Final = 1_000
_REASON_MAX: Final = 300
_PREFIXES: Final = ("__connect.errors.", "__dlq.errors.", "ottla.")
_REASONS: Final = ("exception.message", "message", "reason")
_PLACES: Final = ("topic", "partition", "offset")


class Letter(NamedTuple):
    """What the headers of a dead letter say."""

    reason: str
    topic: str | None
    partition: int | None
    offset: int | None


@dataclass
class Reason:
    """A reason, how many records have it, and the newest of them."""

    text: str
    records: int
    newest: StoredRecord
    letter: Letter


def read_letter(headers: Headers) -> Letter | None:
    """Return what headers say of a dead letter, None if the record is none."""
    facts = {
        name.removeprefix(prefix): (value or b"").decode(errors="backslashreplace")
        for name, value in headers
        for prefix in _PREFIXES
        if name.startswith(prefix)
    }
    reason = next((facts[name] for name in _REASONS if facts.get(name)), None)
    if reason is None:
        return None
    topic, partition, offset = (facts.get(name) for name in _PLACES)
    return Letter(reason[:_REASON_MAX], topic, _number(partition), _number(offset))


def count_reasons(records: Iterable[StoredRecord]) -> Sequence[Reason]:
    """Return the reasons, the most frequent first. The records are the newest first."""
    found: dict[str, Reason] = {}
    for record in records:
        letter = read_letter(record.headers)
        if letter is None:
            continue
        if letter.reason in found:
            found[letter.reason].records += 1
        else:
            found[letter.reason] = Reason(letter.reason, 1, record, letter)
    return sorted(found.values(), key=lambda reason: -reason.records)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
