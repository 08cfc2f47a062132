"""Acknowledgements travel as runs without holes."""

from ottla.client.share.acknowledgements import Acknowledgements
from ottla.client.share.record import AcknowledgeType

ACCEPT, RELEASE, GAP, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.GAP,
    AcknowledgeType.RENEW,
)


def _of(types: dict[int, AcknowledgeType]) -> Acknowledgements:
    made = Acknowledgements()
    made.types.update(types)
    return made


def test_offsets_of_one_type_say_it_once() -> None:
    assert _of({5: ACCEPT, 4: ACCEPT, 6: ACCEPT}).runs() == [(4, 6, (ACCEPT,))]


def test_offsets_of_several_types_say_each() -> None:
    assert _of({4: ACCEPT, 5: RELEASE, 6: ACCEPT}).runs() == [(4, 6, (ACCEPT, RELEASE, ACCEPT))]


def test_a_hole_begins_another_run() -> None:
    assert _of({1: ACCEPT, 3: ACCEPT}).runs() == [(1, 1, (ACCEPT,)), (3, 3, (ACCEPT,))]


def test_a_long_gap_stays_one_run() -> None:
    acks = _of({0: ACCEPT, 10_000_001: ACCEPT, 10_000_002: RELEASE})
    acks.add_unseen([(1, 10_000_000, GAP)])
    assert acks.runs() == [
        (0, 0, (ACCEPT,)),
        (1, 10_000_000, (GAP,)),
        (10_000_001, 10_000_002, (ACCEPT, RELEASE)),
    ]
    assert acks.offsets == (0, 10_000_001, 10_000_002)


def test_what_was_said_later_counts() -> None:
    later = _of({1: ACCEPT})
    later.merge(_of({1: RENEW, 2: RENEW}))
    assert later.types == {1: ACCEPT, 2: RENEW}
    assert later.renews
    assert not Acknowledgements()
