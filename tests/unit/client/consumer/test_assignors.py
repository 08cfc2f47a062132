"""Each way of sharing out, by example."""

from ottla.client.consumer.assignors.balance import assign_evenly
from ottla.client.consumer.assignors.cooperative_sticky import _generation, assign_cooperatively
from ottla.client.consumer.assignors.range import assign_ranges
from ottla.client.consumer.assignors.roundrobin import assign_in_turn
from ottla.client.consumer.embedded_protocol import Subscription, encode_generation
from ottla.model.ids import TopicPartition


def _p(text: str) -> list[TopicPartition]:
    return [TopicPartition(name[0], int(name[1:])) for name in text.split()]


def test_range_cuts_every_topic_alike() -> None:
    members = {"x": Subscription(("a", "b")), "y": Subscription(("a", "b"))}
    assert assign_ranges(members, {"a": 3, "b": 3}) == {"x": _p("a0 a1 b0 b1"), "y": _p("a2 b2")}


def test_static_members_come_first_by_their_instance_id() -> None:
    members = {"x": Subscription(("a",)), "y": Subscription(("a",), group_instance_id="i")}
    assert assign_ranges(members, {"a": 1}) == {"x": [], "y": _p("a0")}


def test_roundrobin_passes_over_who_does_not_want_a_topic() -> None:
    members = {"x": Subscription(("a",)), "y": Subscription(("a", "b"))}
    assert assign_in_turn(members, {"a": 3, "b": 2}) == {"x": _p("a0 a2"), "y": _p("a1 b0 b1")}


def test_topics_that_do_not_exist_are_left_out() -> None:
    members = {"x": Subscription(("a", "gone"))}
    for assign in (assign_ranges, assign_in_turn, assign_cooperatively):
        assert assign(members, {"a": 1}) == {"x": _p("a0")}


def test_the_newest_claim_counts_and_equal_claims_cancel_each_other() -> None:
    members = {name: Subscription(("a",)) for name in "xyz"}
    owned = {"x": (_p("a0 a1"), 5), "y": (_p("a0"), 4), "z": (_p("a1"), 5)}
    shares = assign_evenly(members, {"a": 3}, owned)
    assert "a0" in [f"{where.topic}{where.partition}" for where in shares["x"]]
    assert sorted(len(share) for share in shares.values()) == [1, 1, 1]


def test_partitions_wander_along_a_chain_where_no_topic_is_common() -> None:
    # x has too much of a; z has nothing, but takes only b; y can take a and give b.
    members = {"x": Subscription(("a",)), "y": Subscription(("a", "b")), "z": Subscription(("b",))}
    owned = {"x": (_p("a0 a1 a2"), 1), "y": (_p("b0 b1"), 1), "z": (_p(""), 1)}
    shares = assign_evenly(members, {"a": 3, "b": 2}, owned)
    assert sorted(map(len, shares.values())) == [1, 2, 2]


def test_what_moves_is_given_to_nobody_in_the_first_round() -> None:
    members = {
        "x": Subscription(("a",), owned=tuple(_p("a0 a1 a2 a3")), generation=1),
        "y": Subscription(("a",)),
    }
    first = assign_cooperatively(members, {"a": 4})
    assert len(first["x"]) == 2
    assert first["y"] == []
    members["x"] = members["x"]._replace(owned=tuple(first["x"]), generation=2)
    second = assign_cooperatively(members, {"a": 4})
    assert second["x"] == first["x"]
    assert len(second["y"]) == 2


def test_the_generation_of_a_claim_is_in_the_subscription_or_in_its_note() -> None:
    def claims(of_x: Subscription, of_y: Subscription) -> list[str]:
        shares = assign_cooperatively({"x": of_x, "y": of_y}, {"a": 1})
        return [name for name, share in shares.items() if share]

    old = Subscription(("a",), owned=tuple(_p("a0")), generation=3)
    newer = Subscription(("a",), owned=tuple(_p("a0")), user_data=encode_generation(4))
    # Both claim it, so whoever loses gives it up first, and nobody has it in this round.
    assert claims(old, newer) == []
    alone = Subscription(("a",))
    assert claims(newer, alone) == ["x"]
    assert claims(alone, newer) == ["y"]
    assert _generation(old) == 3
    assert _generation(newer) == 4
    assert _generation(old._replace(user_data=encode_generation(9))) == 3, "the field counts"
    assert _generation(alone) == -1
