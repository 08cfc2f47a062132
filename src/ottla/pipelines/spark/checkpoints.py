"""Checkpoints of pipelines before they are used: is it there, and does it go with what is about to run?

Spark finds out late, inside the first batch, or not at all: state that was kept by customer is taken for
state by city, if both are strings. So each query leaves a note beside its checkpoint that says which topics
it reads and what its state is made of. A query that is about to start is compared with it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ottla.pipelines.definition import InvalidPipeline
from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import find_entry
from ottla.pipelines.sink.ledger import LedgerConflict, check_query, layout_group, ledger_of_write
from ottla.pipelines.sink.options import UNREADABLE
from ottla.pipelines.spark.queries import PlannedQuery
from ottla.pipelines.spark.session import is_remote

NOTE_FILE: Final = "ottla-program.json"
_METADATA_FILE: Final = "metadata"
# Operators that keep something from batch to batch. Other parts of a plan may change at any time.
_STATEFUL: Final = ("Aggregate", "Deduplicate", "FlatMapGroups", "GlobalLimit", "Join", "TransformWithState")
_NUMBERS_THAT_CHANGE: Final = re.compile(r"#\d+L?|-T\d+ms|\bplan_id=\d+")
_NAMES_OF_RESULTS: Final = re.compile(r" AS (?:`[^`]*`|\w+)")
# Spark makes windows by arithmetic with microseconds, in an operator below the one that groups by them.
_WINDOW: Final = "precisetimestampconversion"
_LENGTHS: Final = re.compile(r"(?<=% )\d+|(?<=\+ )\d+|(?<=\+ cast\().+?(?= as interval\))")
Note = Mapping[str, Any]


def check_queries(
    queries: Sequence[PlannedQuery],
    properties: Mapping[str, str],
    directory: Path,
    tell: Callable[[str], None],
) -> dict[str, Note]:
    """Compare queries with their checkpoints, before any of them runs. Returns what to note beside these."""
    notes: dict[str, Note] = {
        query.name: make_note([item.topic for item in query.inputs], state_of(query.rows))
        for query in queries
    }
    link = Link(properties)
    try:
        for query in queries:
            checkpoint = directory / query.name
            check_note(query.name, checkpoint, notes[query.name])
            if query.is_exactly_once and (isinstance(query.output, str) or query.observed):
                check_ledgers(link, query.name, checkpoint)
    finally:
        link.close()
    others = left_over(directory, notes)
    if others:
        tell(f"{directory} also has checkpoints of {', '.join(others)}: these keep their place")
    return notes


def read_query_id(checkpoint: Path) -> str | None:
    """Return the id of the query that a checkpoint belongs to, or None if there is no checkpoint."""
    try:
        return str(json.loads((checkpoint / _METADATA_FILE).read_text())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_ledgers(link: Link, query: str, checkpoint: Path) -> None:
    """Raise InvalidPipeline if batches of a query were delivered with another checkpoint than this one."""
    query_id = read_query_id(checkpoint)
    for ledger in (query, ledger_of_write(query, UNREADABLE)):
        entry = find_entry(link, layout_group(ledger))
        if entry is None:
            continue
        if query_id is None:
            raise InvalidPipeline(
                f"pipeline {query!r} has delivered batches, and its checkpoint {checkpoint} is not there, so "
                "it is unknown what it has read: restore the checkpoint, name the --directory that has it, "
                f"give the pipeline another name, or delete the groups {layout_group(query)}* to start over "
                "and deliver rows again"
            )
        try:
            check_query(entry, query_id, ledger)
        except LedgerConflict as error:
            raise InvalidPipeline(str(error)) from error


def describe_state(operators: Iterable[str]) -> list[str]:
    """Return what a stream's operators keep from batch to batch, in words that are the same at each start."""
    found = []
    for operator in operators:
        text = _NUMBERS_THAT_CHANGE.sub("", operator.lstrip("~'"))
        if _WINDOW in text:
            found.append(f"windows of {', '.join(dict.fromkeys(map(_length, _LENGTHS.findall(text))))}")
        elif text.startswith(_STATEFUL):
            found.append(_NAMES_OF_RESULTS.sub("", text))
    return found


def _length(text: str) -> str:
    return f"{int(text) / 1_000_000:g} seconds" if text.isdecimal() else text


def stream_operators(plan: Any) -> Iterator[str]:
    """Yield the operators of a plan that work on streams, from the result down, as Spark writes them."""
    children = plan.children()
    below = [children.apply(place) for place in range(children.size())]
    text = plan.simpleString(_FIELDS_SHOWN_MAX)
    # A table that is joined with is read again by each batch: such a join keeps nothing.
    if not text.lstrip("~'").startswith("Join") or all(child.isStreaming() for child in below):
        yield text
    for child in below:
        if child.isStreaming():
            yield from stream_operators(child)


_FIELDS_SHOWN_MAX: Final = 1_000


def state_of(frame: Any) -> list[str] | None:
    """Return what a frame keeps from batch to batch. Through Spark Connect there is no plan to look at."""
    if is_remote(frame):
        return None
    return describe_state(stream_operators(frame._jdf.queryExecution().analyzed()))


def make_note(inputs: Iterable[str], state: list[str] | None) -> dict[str, Any]:
    """Return what is compared."""
    return {"inputs": list(inputs), "state": state}


def check_note(query: str, checkpoint: Path, note: Note) -> None:
    """Raise InvalidPipeline if a program cannot go on from a checkpoint: it says what is possible."""
    before = _read_note(checkpoint)
    if before is None or read_query_id(checkpoint) is None:
        return
    start_over = (
        f"give the pipeline another name to start over with new state, or remove {checkpoint} and the groups "
        f"{layout_group(query)}*, and what it has delivered comes again"
    )
    if before["inputs"] != note["inputs"]:
        raise InvalidPipeline(
            f"pipeline {query!r} reads {_listed(note['inputs'])} and its checkpoint belongs to "
            f"{_listed(before['inputs'])}: Spark knows inputs by their order, so they cannot change. Restore "
            f"them, or {start_over}"
        )
    if before["state"] is None or note["state"] is None or before["state"] == note["state"]:
        return
    was, now = _first_difference(before["state"], note["state"])
    raise InvalidPipeline(
        f"the state of pipeline {query!r} was made by {was!r} and the program now has {now!r}: filters, "
        "columns, outputs and triggers may change, but not the keys, windows, joins and aggregates. "
        f"Restore them, or {start_over}"
    )


def write_note(checkpoint: Path, note: Note) -> None:
    """Leave a note beside a checkpoint. Spark does not look at files that it does not know."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    path = checkpoint / NOTE_FILE
    text = json.dumps(note, indent=1) + "\n"
    if not path.exists() or path.read_text() != text:
        beside = path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(path)


def left_over(directory: Path, queries: Iterable[str]) -> list[str]:
    """Return the names of queries that have a checkpoint here, and that the program does not have."""
    known = set(queries)
    there = (path.parent.name for path in directory.glob(f"*/{_METADATA_FILE}"))
    return sorted(name for name in there if name not in known)


def _read_note(checkpoint: Path) -> Note | None:
    try:
        found = json.loads((checkpoint / NOTE_FILE).read_text())
        return {"inputs": list(found["inputs"]), "state": found["state"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _first_difference(before: list[str], now: list[str]) -> tuple[str, str]:
    pairs = zip([*before, *[_NOTHING] * len(now)], [*now, *[_NOTHING] * len(before)], strict=True)
    return next((was, new) for was, new in pairs if was != new)


_NOTHING: Final = "nothing"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "no topic"
