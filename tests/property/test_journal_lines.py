"""Whatever stands in the journal, whoever wrote it and when, every question is answered."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_up_evidence import NOW_MS, T0, group, history, record, topic

from ottla.explain.causes.order import why_order
from ottla.explain.causes.silent import why_silent
from ottla.explain.causes.slow import why_slow, why_topic_slow
from ottla.explain.causes.twice import why_topic_twice, why_twice
from ottla.explain.evidence.journal import KINDS, MORE, JournalView, read_event
from ottla.explain.evidence.logs import LogSample
from ottla.explain.evidence.past import group_at, topic_at
from ottla.explain.lag.outlook import Velocity

CLIENTS = st.sampled_from(["reader", "a", "b", ""])
HOSTS = st.sampled_from(["10.0.0.1", "::1"])
PLACES = st.sampled_from(["t/0", "t/1", "u/0"])
NUMBERS = st.integers(-1, 100)
OFFSETS = st.dictionaries(PLACES, NUMBERS, max_size=3)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "after_ms": st.integers(0, 600_000),
    "answered": st.booleans(),
    "api": st.sampled_from(["fetch", "join_group", "offset_commit", "heartbeat", "produce"]),
    "at": st.one_of(OFFSETS, PLACES, st.lists(PLACES, max_size=2)),
    "before": st.one_of(NUMBERS, st.lists(NUMBERS, max_size=2)),
    "began": st.dictionaries(PLACES, st.lists(NUMBERS, min_size=2, max_size=2), max_size=2),
    "client": CLIENTS,
    "closed": st.booleans(),
    "connected": st.booleans(),
    "count": NUMBERS,
    "ends": OFFSETS,
    "epoch": NUMBERS,
    "error": st.sampled_from(["OFFSET_OUT_OF_RANGE", "FENCED_INSTANCE_ID", "TOPIC_AUTHORIZATION_FAILED"]),
    "for_ms": st.integers(0, 600_000),
    "group": st.just("g"),
    "high": OFFSETS,
    "host": HOSTS,
    "isolation": st.integers(0, 1),
    "isr": st.lists(NUMBERS, max_size=3),
    "leader": NUMBERS,
    "member": st.sampled_from(["m-1", "a", "b"]),
    "ms": st.integers(0, 60_000),
    "offers": st.lists(st.sampled_from(["range", "roundrobin"]), max_size=2),
    "partitions": st.integers(1, 9),
    "port": st.integers(1, 9),
    "producer": NUMBERS,
    "quota": st.sampled_from(["consumer_byte_rate", "producer_byte_rate"]),
    "reason": st.one_of(st.none(), st.text(max_size=5)),
    "topic": st.sampled_from(["t", "u"]),
    "topics": st.lists(st.sampled_from(["t", "x"]), max_size=2),
    "txn": st.one_of(st.none(), st.just("till")),
    "why": st.sampled_from(["left", "session", "rebalance", "sync", "?"]),
    MORE: st.integers(0, 100),
}
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just([1]), st.just({"a": 1})
)


@st.composite
def lines(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A line of a kind that some release writes, with any field left out or of a wrong type."""
    kind = draw(st.sampled_from([*KINDS, "a-kind-of-tomorrow"]))
    facts = {name: draw(FIELDS[name]) for name in KINDS.get(kind, {})}
    for name in draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=4)):
        facts[name] = draw(st.one_of(FIELDS[name], ANYTHING))
    for name in draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=2)):
        facts.pop(name, None)
    value = {"t": draw(st.integers(0, NOW_MS)), "n": draw(st.integers(1, 3)), "k": kind, **facts}
    return f"client/{draw(CLIENTS)}@10.0.0.1".encode(), json.dumps(value).encode()


@given(st.lists(lines(), max_size=30), st.integers(0, NOW_MS))
def test_every_question_bears_every_line(written: list[tuple[bytes, bytes]], at_ms: int) -> None:
    events = [read_event(key, value, "__ottla_journal/0@1") for key, value in written]
    view = JournalView(True, tuple(sorted(filter(None, events), key=lambda item: item.at_ms)))
    past = history((1_000, 10), (500_000, 5), hands=((500, "a"), (20_000, "b"), (40_000, "")))
    records = [record(T0, number, b"k", number * 1000, b"value-%d" % (number // 2)) for number in range(20)]
    log = LogSample(tuple(records), tuple(item.batch for item in records), {T0: 0}, {T0: 20}, True)
    case = group(committed=4, end=20, velocity=Velocity(0, 1), history=past, view=view, log=log)
    for one in (case, group_at(case, at_ms)):
        for why in (why_silent, why_twice, why_slow):
            assert why(one).sentence
        assert why_silent(one, "reader", "t").as_json()
    topic_case = topic(2, *records, view=view)
    for each in (topic_case, topic_at(topic_case, at_ms)):
        for ask in (why_order, why_topic_twice, why_topic_slow):
            assert ask(each).sentence


@given(
    st.binary(max_size=20), st.one_of(st.none(), st.binary(max_size=20), st.just(b'{"t":1e400,"k":"lost"}'))
)
def test_what_is_no_line_of_a_journal_is_left_out(key: bytes, value: bytes | None) -> None:
    assert read_event(key, value, "__ottla_journal/0@1") is None


def test_a_count_of_further_events_is_a_kind_of_its_own() -> None:
    event = read_event(b"node/1", b'{"t":5,"n":1,"k":"appended-at","more":14}', "")
    assert event is not None
    assert (event.kind, event.facts["of"], event.facts["more"]) == ("more", "appended-at", 14)
