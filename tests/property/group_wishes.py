"""Random consumer groups for assignors: who wants what, and has what from before."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import strategies as st

from ottla.coordination.group.consumer.assignors.assignor import Partitions, Wish
from ottla.model.uuid import Uuid

TOPICS = tuple(Uuid(f"topic {number}".encode().ljust(16)) for number in range(5))
Wishes = dict[str, Wish]
Topics = dict[Uuid, int]


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool = False) -> tuple[Wishes, Topics]:
    """Draw members, topics, and what the members had before: of topics that are gone or were larger, too."""
    topics = {topic: draw(st.integers(1, 8)) for topic in TOPICS[: draw(st.integers(0, len(TOPICS)))]}
    subscription = st.frozensets(st.sampled_from(sorted(topics))) if topics else st.just(frozenset[Uuid]())
    common = draw(subscription)
    names = draw(st.lists(st.text("abcxyz", min_size=1, max_size=3), max_size=8, unique=True))
    owners = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(TOPICS), st.integers(0, 9)),
            st.sampled_from(names) if names else st.nothing(),
            max_size=40 if names else 0,
        )
    )
    wishes = {}
    for name in names:
        assigned: dict[Uuid, set[int]] = {}
        for (topic, number), owner in owners.items():
            if owner == name:
                assigned.setdefault(topic, set()).add(number)
        wanted = common if same_topics else draw(subscription)
        instance_id = draw(st.none() | st.just(f"i{name}"))
        held = {topic: frozenset(numbers) for topic, numbers in assigned.items()}
        wishes[name] = Wish(name, wanted, instance_id, held)
    return wishes, topics


def loads(assignment: Mapping[str, Partitions]) -> list[int]:
    """Return how many partitions everybody has, in ascending order."""
    return sorted(sum(map(len, partitions.values())) for partitions in assignment.values())


def check_complete(wishes: Wishes, topics: Topics, assignment: Mapping[str, Partitions]) -> None:
    """Every partition of a wanted topic has one owner, who wants it; nothing else is assigned."""
    assert assignment.keys() == wishes.keys()
    owned = Counter(
        (topic, number)
        for member_id, partitions in assignment.items()
        for topic, numbers in partitions.items()
        for number in numbers
        if topic in wishes[member_id].topics
    )
    wanted = {topic for wish in wishes.values() for topic in wish.topics}
    assert owned == Counter((topic, number) for topic in wanted for number in range(topics[topic]))
    assert sum(loads(assignment)) == len(owned)
    assert all(numbers for partitions in assignment.values() for numbers in partitions.values())


def kept(wishes: Wishes, assignment: Mapping[str, Partitions]) -> int:
    """Return how many partitions stay where they were."""
    return sum(
        len(numbers & wishes[member_id].assigned.get(topic, frozenset()))
        for member_id, partitions in assignment.items()
        for topic, numbers in partitions.items()
    )


def with_assignment(wishes: Wishes, assignment: Mapping[str, Partitions]) -> Wishes:
    """Return the group as it is once an assignment holds."""
    return {
        name: Wish(name, wish.topics, wish.instance_id, assignment[name]) for name, wish in wishes.items()
    }
