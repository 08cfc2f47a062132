"""Pages that move: the live tail and the search."""

import re

from tests.console.test_acts import acting, node
from tests.support.console_visitor import ConsoleVisitor

from ottla.console.looks.places import decode_offsets
from ottla.console.serving.streams import Event
from ottla.testing.node import ThreadNode

__all__ = ["acting", "node"]


def rows(events: list[Event]) -> str:
    return "".join(event.data["rows"] for event in events)


def test_a_tail_shows_what_is_written_after_it_began(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("tailed")
    node.produce("tailed", "before")
    written: list[int] = []

    def is_enough(events: list[Event]) -> bool:
        if events and not written:
            written.append(node.produce("tailed", "<b>after</b>"))
        return "after" in rows(events)

    events = acting.events("/topics/tailed/live/stream", is_enough)
    assert "before" not in rows(events)
    assert "&lt;b&gt;after" in rows(events)
    assert "<b>" not in rows(events)
    assert decode_offsets(events[-1].id) == {0: 2}
    assert events[-1].data["seen"] == 1


def test_a_tail_goes_on_where_it_stopped_and_counts_what_it_drops(
    acting: ConsoleVisitor, node: ThreadNode
) -> None:
    node.create_topic("resumed")
    node.produce("resumed", *(f"v{number}" for number in range(200)))
    events = acting.events(
        "/topics/resumed/live/stream?from=0.0", lambda events: sum(one.data["seen"] for one in events) >= 200
    )
    assert events[-1].data["seen"] == 200
    assert events[-1].data["dropped"] == 175
    assert "v199" in rows(events)
    assert acting.get("/topics/resumed/live/stream?from=x").status_code == 400
    assert acting.get("/topics/nowhere/live").status_code == 404


def test_a_search_finds_says_what_is_left_and_ends(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("searched", 2)
    for partition in (0, 1):
        values = [f"needle {number}" if number % 50 == 0 else "hay" for number in range(300)]
        node.produce("searched", *values, partition=partition)
    events = acting.events("/topics/searched/search/stream?q=needle", lambda events: is_over(events))
    last = events[-1].data
    assert (last["state"], last["left"], last["scanned"]) == ("done", 0, 600)
    assert sum(event.data["found"] for event in events) == 12
    assert len(re.findall(r"needle \d+", rows(events))) == 12


def is_over(events: list[Event]) -> bool:
    return bool(events) and events[-1].data.get("state") in ("done", "paused")


def test_a_search_pauses_and_is_resumed(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("paused")
    for _ in range(3):
        node.produce("paused", *(f"needle {number}" for number in range(100)))
    path = "/topics/paused/search/stream?q=needle"
    found, where, stops = 0, "", ""
    for state in ("paused", "paused", "paused", "done"):
        events = acting.events(f"{path}&from={where}&to={stops}" if where else path, is_over)
        assert events[-1].data["state"] == state
        found += sum(event.data["found"] for event in events)
        where, stops = events[-1].id, events[-1].data["to"]
        # What comes later is not part of this search.
        node.produce("paused", "needle")
    assert found == 300


def test_a_search_by_key_looks_at_the_key_alone(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("keyed")
    node.produce("keyed", "b", key="a")
    node.produce("keyed", "a", key="b")
    events = acting.events("/topics/keyed/search/stream?key=a", is_over)
    assert sum(event.data["found"] for event in events) == 1
    assert acting.get("/topics/keyed/search/stream").status_code == 400
