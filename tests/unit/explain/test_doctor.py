"""What the check of a cluster says of refused requests, of offsets past the end, and of ghosts."""

from dataclasses import replace
from typing import Any

from tests.support.made_up_evidence import MEMBER, NOW_MS, T0, T1, event, journal

from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.doctor import _lag, _members, _network
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import readers_of
from ottla.explain.lag.looking import GroupLook
from ottla.explain.lag.outlook import PartitionLook, Velocity, say_outlook
from ottla.model.ids import TopicPartition


def test_refused_requests_are_counted_and_typos_in_commands_are_left_out() -> None:
    typo = event(
        1,
        "request-refused",
        "client/ottla@127.0.0.1",
        api="metadata",
        error="UNKNOWN_TOPIC_OR_PARTITION",
        count=3,
    )
    (fine,) = _network(journal(typo))
    assert fine.is_fine
    denied = event(
        1, "request-refused", "client/ottla@h", api="fetch", error="TOPIC_AUTHORIZATION_FAILED", count=1
    )
    (told,) = _network(journal(denied))
    assert not told.is_fine, "an application may have the default client id, too"
    refused = [
        event(2, "request-refused", "client/till@h", api="produce", error="MESSAGE_TOO_LARGE", count=count)
        for count in (4, 5)
    ]
    other = event(
        3, "request-refused", "client/x@h", api="fetch", error="TOPIC_AUTHORIZATION_FAILED", count=1
    )
    (sick,) = _network(journal(typo, *refused, other))
    assert not sick.is_fine
    assert (
        "10 requests were refused in the last 5 minutes, 2.0 a minute; 9 of them produce of till@h"
        in sick.text
    )
    assert sick.next_step == "ottla journal --kind request-refused --since 5m"


def look(
    committed: int | None, *, end: int = 100, members: int = 1, bare: tuple[TopicPartition, ...] = ()
) -> GroupLook:
    ghost = replace(MEMBER, instance_id="pod-a")
    lag = None if committed is None else max(end - committed, 0)
    part = PartitionLook(
        PartitionLag(T0, committed, 0, end, lag, ghost if members else None), velocity=Velocity(0, 0)
    )
    return GroupLook("g", "classic", "Stable", members, (part,), bare=bare)


def test_an_offset_past_the_end_is_no_lag_of_zero() -> None:
    (told,) = _lag((look(10_000),), NOW_MS)
    assert not told.is_fine
    assert "group g has committed offset 10000 of t-0, which ends at 100" in told.text
    assert say_outlook(look(10_000).partitions) == "past the end"
    assert next(_lag((look(100),), NOW_MS)).is_fine


def test_a_group_that_never_committed_has_no_known_lag() -> None:
    (told,) = _lag((look(None),), NOW_MS)
    assert "has never committed t-0, so its lag is not known: at most 100 records" in told.text
    assert next(_lag((look(None, members=0),), NOW_MS)).is_fine, "nobody reads"
    assert next(_lag((look(None, end=0),), NOW_MS)).is_fine, "there is nothing to commit"


def test_a_static_member_that_is_gone_is_named_with_how_to_remove_it() -> None:
    closed = event(
        1, "fetch-position", client="reader", host="10.0.0.1", n=1, port=1, at={"t/0": 40}, closed=True
    )
    (told,) = _members((look(40),), journal(), readers_of(journal(closed)))
    assert "static member pod-a of group g is gone, and holds t-0" in told.text
    assert told.next_step == "ottla group remove-member g pod-a"
    back = replace_facts(closed, port=2, closed=False)
    assert next(_members((look(40),), journal(), readers_of(journal(closed, back)))).is_fine
    assert next(_members((look(100),), journal(), readers_of(journal(closed)))).is_fine, "nothing waits"


def replace_facts(line: JournalEvent, **facts: Any) -> JournalEvent:
    return line._replace(facts={**line.facts, **facts})


def test_partitions_that_no_member_has_are_named() -> None:
    (told,) = _members((look(100, bare=(T1, TopicPartition("t", 2))),), journal())
    assert told.text == "no member of group g has t-1, t-2"
    assert told.next_step == "ottla why silent g"
