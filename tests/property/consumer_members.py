"""Random members of classic groups, some of whom owned something."""

from collections.abc import Mapping

from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import Members, PartitionCounts, Shares
from ottla.client.consumer.embedded_protocol import Subscription, encode_sticky_note
from ottla.model.ids import TopicPartition

TOPICS = ("a", "b", "c", "d")
_names = st.text("xyz01", min_size=1, max_size=4)


def member(
    topics: tuple[str, ...], owned: tuple[TopicPartition, ...], instance_id: str | None
) -> Subscription:
    """Return what a member says that owned these partitions in the last generation."""
    return Subscription(topics, owned, 3, encode_sticky_note(owned, 3), group_instance_id=instance_id)


@st.composite
def groups(draw: st.DrawFn, same_topics: bool = False) -> tuple[Members, PartitionCounts]:
    """Return members by name, and how many partitions each topic has."""
    partitions = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7), min_size=1))
    names = sorted(draw(st.sets(_names, min_size=1, max_size=6)))
    topic_sets = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True).map(tuple)
    common = draw(topic_sets)
    members = {}
    # Each partition was owned by one member at most, of one generation, as in a group that worked.
    owners = {
        TopicPartition(topic, number): draw(st.sampled_from([*names, None]))
        for topic, count in partitions.items()
        for number in range(count)
    }
    for name in names:
        topics = common if same_topics else draw(topic_sets)
        owned = tuple(where for where, owner in owners.items() if owner == name and where.topic in topics)
        instance_id = draw(st.none() | st.just(f"i-{name}"))
        members[name] = member(topics, owned, instance_id)
    return members, partitions


def check_complete(members: Members, partitions: PartitionCounts, shares: Shares) -> None:
    """Each wanted partition has one reader, and each reader wants what it has."""
    given_out = [where for share in shares.values() for where in share]
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    expected = {
        TopicPartition(topic, number)
        for topic, count in partitions.items()
        if topic in wanted
        for number in range(count)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == expected
    assert all(where.topic in members[name].topics for name, share in shares.items() for where in share)


def loads(shares: Mapping[str, list[TopicPartition]]) -> list[int]:
    """Return how many partitions the members have, the fewest first."""
    return sorted(map(len, shares.values()))


def kept(members: Members, shares: Shares) -> int:
    """Return how many partitions stay where they were."""
    return sum(len(set(members[name].owned) & set(share)) for name, share in shares.items())
