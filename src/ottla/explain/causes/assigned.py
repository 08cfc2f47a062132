"""Members without partitions, and partitions without members."""

from collections.abc import Iterator, Sequence

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Cause, Evidence, Strength
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.journal import JournalEvent
from ottla.model.ids import TopicPartition


def without_topic(
    case: GroupCase, members: Sequence[MemberDescription], topic: str | None
) -> Iterator[Cause]:
    source = f"ottla group describe {case.group_id}"
    if is_rebalancing(case):
        # Brokers do not tell what members have subscribed to before they are done.
        return
    for member in members:
        missing = [name for name in member.subscribed_topics if name not in case.topics]
        if missing and not member.assignment:
            yield Cause(
                "topic-missing",
                Strength.PROVED,
                f"{member.client_id} subscribes to {', '.join(missing)}, which does not exist",
                (Evidence(f"topics: {', '.join(sorted(case.topics)) or 'none'}", "ottla topic list"),),
                ("create the topic, or correct its name in the consumer",),
                weight=8,
            )
        elif member.subscribed_regex is not None and not member.assignment:
            yield Cause(
                "pattern-matches-nothing",
                Strength.PROVED,
                f"the pattern {member.subscribed_regex} of {member.client_id} matches no topic",
                (Evidence(f"topics: {', '.join(sorted(case.topics)) or 'none'}", "ottla topic list"),),
                ("correct the pattern: it has to match the whole name of a topic",),
                weight=8,
            )
        elif not member.subscribed_topics and member.subscribed_regex is None and not member.assignment:
            yield Cause(
                "topic-missing",
                Strength.LIKELY,
                f"{member.client_id} is a member, but subscribes to no topic that exists",
                (Evidence(f"member {member.member_id} has no topics and no partitions", source),),
                ("check the topic or the pattern that the consumer subscribes to",),
                weight=8,
            )
    if topic is not None and all(topic not in item.subscribed_topics for item in members):
        subscribed = sorted({name for item in members for name in item.subscribed_topics})
        newer = _newer_than_members(case, topic)
        if newer is not None:
            yield _not_yet_seen(case, topic, newer, subscribed)
            return
        yield Cause(
            "another-topic",
            Strength.PROVED,
            f"no member of group {case.group_id} subscribes to {topic}",
            (Evidence(f"they subscribe to {', '.join(subscribed) or 'nothing'}", source),),
            ("correct the topics that the consumer subscribes to",),
            weight=8,
        )


def _newer_than_members(case: GroupCase, topic: str) -> JournalEvent | None:
    """Return when a topic was made, if the members said before that what they subscribe to."""
    made = [*case.journal.of("topic-created", topic=topic)]
    joined = [item.at_ms for item in case.history.generations if item.members]
    return made[-1] if made and joined and made[-1].at_ms > joined[-1] else None


def _not_yet_seen(case: GroupCase, topic: str, made: JournalEvent, subscribed: Sequence[str]) -> Cause:
    return Cause(
        "topic-newer-than-members",
        Strength.LIKELY,
        f"{topic} was made after the members of group {case.group_id} have said what they subscribe to: one "
        "that subscribes to a pattern looks for new topics only every metadata.max.age.ms (5 minutes)",
        (
            Evidence(f"{topic} was created", f"journal {made.place}", made.at_ms),
            Evidence(
                f"the members joined before that, with {', '.join(subscribed) or 'nothing'}",
                "__consumer_offsets",
                max(item.at_ms for item in case.history.generations if item.members),
            ),
        ),
        (
            "wait, or restart a member; with librdkafka lower topic.metadata.refresh.interval.ms",
            "if the members subscribe to names: add the topic there",
        ),
        weight=8,
    )


def deleted_while_read(case: GroupCase, members: Sequence[MemberDescription]) -> Iterator[Cause]:
    """Find a topic that members have partitions of, and that was deleted."""
    held = {where.topic for item in members for where in item.assignment}
    for topic in sorted(held - case.topics.keys()):
        for event in [*case.journal.of("topic-deleted", topic=topic)][-1:]:
            yield Cause(
                "topic-deleted",
                Strength.PROVED,
                f"topic {topic} was deleted, and members of group {case.group_id} still have its partitions",
                (
                    Evidence(f"{topic} was deleted", f"journal {event.place}", event.at_ms),
                    Evidence(f"there is no topic {topic}", "ottla topic list", case.now_ms),
                ),
                ("make the topic again, or take it out of the subscription",),
                weight=8.6,
            )
            return


def without_partitions(case: GroupCase, members: Sequence[MemberDescription]) -> Iterator[Cause]:
    assert case.description is not None, "asked only of groups with members"
    idle = [item for item in members if not item.assignment and item.subscribed_topics]
    if not idle or is_rebalancing(case):
        return
    topics = {name for item in case.description.members for name in item.subscribed_topics}
    partitions = sum(case.topics.get(name, 0) for name in topics)
    count = len(case.description.members)
    if partitions and count > partitions:
        names = ", ".join(sorted({item.client_id for item in idle}))
        yield Cause(
            "more-members-than-partitions",
            Strength.PROVED,
            f"{len(idle)} of {count} members get nothing: {', '.join(sorted(topics))} "
            f"has only {partitions} partitions",
            (Evidence(f"without partitions: {names}", f"ottla group describe {case.group_id}", case.now_ms),),
            (f"run at most {partitions} members, or add partitions with `ottla topic alter`",),
            weight=7,
        )


def without_member(case: GroupCase, members: Sequence[MemberDescription]) -> Iterator[Cause]:
    """Find partitions of a topic that members read others of: they have not learned of them yet."""
    assert case.description is not None, "asked only of groups with members"
    if is_rebalancing(case):
        return
    read = {where for item in case.description.members for where in item.assignment}
    for topic in sorted({where.topic for item in members for where in item.assignment}):
        left = [
            str(number)
            for number in range(case.topics.get(topic, 0))
            if TopicPartition(topic, number) not in read
        ]
        if left:
            yield Cause(
                "partitions-without-member",
                Strength.PROVED,
                f"no member of group {case.group_id} has {len(left)} of the {case.topics[topic]} partitions "
                f"of {topic}: nobody reads what is written to them",
                (
                    Evidence(
                        f"without a member: partitions {', '.join(left[:8])}" + " and more" * (len(left) > 8),
                        f"ottla group describe {case.group_id}",
                        case.now_ms,
                    ),
                ),
                (
                    "wait, or restart a member: clients learn of new partitions after metadata.max.age.ms",
                    "set auto.offset.reset=earliest, so that records written meanwhile are not left out",
                ),
                weight=7,
            )
            return


def is_rebalancing(case: GroupCase) -> bool:
    """Say whether the group was dividing its partitions when it was described."""
    return case.description is not None and case.description.state.lower() not in ("stable", "empty", "dead")
