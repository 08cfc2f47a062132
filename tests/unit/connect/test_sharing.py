"""How the leader of the group divides connectors and tasks, and the bytes in which it says so."""

import random

import pytest

from ottla.connect.herding.assign import divide
from ottla.connect.herding.protocol import (
    InvalidMessage,
    Member,
    Share,
    decode_member,
    decode_share,
    encode_member,
    encode_share,
)
from ottla.connect.herding.units import Unit

UNITS = [Unit(name, task) for name in ("a", "b", "c") for task in (-1, 0, 1)]


def _settle(owned: dict[str, set[Unit]], wanted: list[Unit]) -> dict[str, set[Unit]]:
    """Divide until nobody has to give anything up, as members do that join again."""
    for _ in range(20):
        running = [unit for units in owned.values() for unit in units]
        assert len(running) == len(set(running)) or len(owned) == 1, "a unit runs twice"
        shares = divide(wanted, owned)
        owned = {
            name: (owned[name] - set(share.revoked)) | set(share.added) for name, share in shares.items()
        }
        if not any(share.revoked for share in shares.values()):
            return owned
    raise AssertionError("it never settles")


def test_a_single_member_gets_everything() -> None:
    assert _settle({"m": set()}, UNITS) == {"m": set(UNITS)}


@pytest.mark.parametrize("seed", range(100))
def test_members_that_come_and_go_end_with_everything_once_and_evenly(seed: int) -> None:
    rng = random.Random(seed)
    owned: dict[str, set[Unit]] = {"m0": set()}
    for step in range(12):
        wanted = rng.sample(UNITS, rng.randrange(len(UNITS) + 1))
        if rng.random() < 0.5:
            owned[f"m{step + 1}"] = set()
        elif len(owned) > 1:
            del owned[rng.choice(sorted(owned))]

        owned = _settle(owned, wanted)

        assert sorted(unit for units in owned.values() for unit in units) == sorted(wanted)
        for is_connector in (True, False):
            loads = [sum(unit.is_connector is is_connector for unit in units) for units in owned.values()]
            assert max(loads) <= -(-sum(loads) // len(loads)), f"seed={seed}: {loads}"


def test_a_unit_that_two_members_claim_goes_to_one() -> None:
    shares = divide([Unit("a")], {"m": [Unit("a")], "n": [Unit("a")]})

    assert (shares["m"].revoked, shares["n"].revoked) == ((), (Unit("a"),))
    assert shares["m"].added == shares["n"].added == ()


@pytest.mark.parametrize("version", [1, 2])
def test_messages_have_the_bytes_of_kafka_connect(version: int) -> None:
    member = Member("http://h:1/", 5, (Unit("x", -1), Unit("x", 0)))
    share = Share("id", "http://h:1/", 7, (Unit("x", -1), Unit("y", 2)), (Unit("z", 0),))

    assert decode_member(encode_member(member, version)) == member
    assert decode_share(encode_share(share, version)) == share
    # The version, the URL, the offset, and no assignment (a length of -1).
    expected = f"000{version}" + "000175" + "0000000000000003" + "ffffffff"
    assert encode_member(Member("u", 3), version).hex() == expected
    with pytest.raises(InvalidMessage):
        decode_share(encode_share(share, version)[:-3])
