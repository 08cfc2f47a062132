"""Members that are gone, die again and again, were not let in, began elsewhere, or only seem to read."""

import time

from ottla.explain.answer import Answer
from ottla.lab.clients import CONFLUENT, KAFKA_PYTHON
from ottla.lab.scenario import ask_silent, scenario
from ottla.lab.stage import Stage

RATE = 50
COOPERATIVE = "cooperative-sticky"


def _wait(stage: Stage, seconds: float, what: str) -> None:
    then = time.monotonic() + seconds
    stage.until(lambda: time.monotonic() > then, what)


@scenario("silent", "static-member-gone", "A pod with a static membership was killed and stays away.")
def static_ghost(stage: Stage, is_faulty: bool) -> Answer:
    """Kill a static member whose session lasts for minutes."""
    stage.create(1)
    with stage.stream(RATE):
        pod = stage.member(
            name="pod-a", client=CONFLUENT, group_instance_id="pod-a", session_timeout_ms=300_000
        )
        stage.until_committed(RATE)
        if is_faulty:
            pod.kill()
            stage.until_journal("fetch-position", client="pod-a", closed=True)
            _wait(stage, 6, "it to stay away")
        return ask_silent(stage, client="pod-a")


@scenario("silent", "member-gone", "A consumer was killed, and its session is not over yet.")
def killed_just_now(stage: Stage, is_faulty: bool) -> Answer:
    """Kill an ordinary member with a long session."""
    stage.create(1)
    with stage.stream(RATE):
        member = stage.member(session_timeout_ms=60_000)
        stage.until_committed(RATE)
        if is_faulty:
            member.kill()
            stage.until_journal("fetch-position", client=member.client_id, closed=True)
            _wait(stage, 6, "it to stay away")
        return ask_silent(stage)


@scenario("silent", "kills-its-consumer", "A record ends the application that reads it, again and again.")
def poison(stage: Stage, is_faulty: bool) -> Answer:
    """Let one process after another die at the same record."""
    stage.create(1)
    at = stage.rng.randrange(5, 30)
    stage.write(stage.values(100))
    client = stage.client()
    for number in range(4 if is_faulty else 1):
        member = stage.member(
            client=client, name="app", dies_at=at if is_faulty else None, session_timeout_ms=2_000
        )
        if is_faulty:
            stage.until(lambda member=member: not member.is_alive, "it to die")  # type: ignore[misc]
            stage.until(
                lambda number=number: stage.count_journal("member-left", group=stage.group) > number,  # type: ignore[misc]
                "its session to end",
            )
    if is_faulty:
        return ask_silent(stage)
    with stage.stream(RATE):
        stage.until_committed(100)
        return ask_silent(stage)


@scenario("silent", "began-at-end", "A new group begins at the end of a topic that has old records.")
def from_the_end(stage: Stage, is_faulty: bool) -> Answer:
    """Start a group with auto.offset.reset=latest."""
    stage.create(1)
    count = stage.rng.randrange(50, 500)
    stage.write(stage.values(count))
    reset = "latest" if is_faulty else "earliest"
    client = stage.rng.choice((CONFLUENT, KAFKA_PYTHON))
    member = stage.member(client=client, auto_offset_reset=reset)
    stage.until_joined(1)
    stage.until_journal("fetch-position", client=member.client_id)
    if is_faulty:
        return ask_silent(stage)
    with stage.stream(RATE):
        stage.until_committed(count)
        return ask_silent(stage)


@scenario("silent", "topic-made-again", "Somebody deleted a topic and made it again.")
def made_again(stage: Stage, is_faulty: bool) -> Answer:
    """Delete a topic that a group has read, and create one of the same name."""
    stage.create(1)
    count = stage.rng.randrange(20, 200)
    stage.write(stage.values(count))
    member = stage.member(client=CONFLUENT, auto_offset_reset="latest" if is_faulty else "earliest")
    if is_faulty:
        # It reads only what comes now.
        stage.until_journal("fetch-position", client=member.client_id)
        stage.write(stage.values(20))
        stage.until_committed(count + 20)
        stage.ask(lambda access: access.admin.topics.delete(stage.topic))
        stage.until_journal("topic-deleted", topic=stage.topic)
        stage.create(1)
        stage.write(stage.values(30))
        stage.until_journal("topic-created", topic=stage.topic)
        _wait(stage, 3, "the member to find the new topic")
        return ask_silent(stage)
    with stage.stream(RATE):
        stage.until_committed(count)
        return ask_silent(stage)


@scenario("silent", "stopped-polling", "A consumer stopped polling, while its library fetches on.")
def stops_polling(stage: Stage, is_faulty: bool) -> Answer:
    """Let a member with automatic commits hang after some records, with room to fetch ahead."""
    stage.create(1)
    member = stage.member(
        client=CONFLUENT, commits="never", enable_auto_commit="true", auto_commit_interval_ms=500
    )
    with stage.stream(RATE):
        stage.until_committed(10)
        if is_faulty:
            member.order("hang")
            _wait(stage, 13, "commits to be overdue")
        return ask_silent(stage)


@scenario("silent", "assignors-do-not-match", "A new release uses another assignor than the old one.")
def mixed_assignors(stage: Stage, is_faulty: bool) -> Answer:
    """Start a member that shares no assignor with the group."""
    stage.create(2)
    with stage.stream(RATE, partition=lambda number: number % 2):
        stage.member(client=CONFLUENT, name="old", partition_assignment_strategy="range")
        stage.until_joined(1)
        strategy = COOPERATIVE if is_faulty else "range"
        new = stage.member(client=CONFLUENT, name="new", partition_assignment_strategy=strategy)
        if is_faulty:
            stage.until_journal("join-refused", client="new")
        else:
            stage.until_joined(2)
            stage.until_seen(new, RATE)
        return ask_silent(stage, client="new")


@scenario("silent", "join-refused", "A consumer asks for a longer session than the brokers allow.")
def session_too_long(stage: Stage, is_faulty: bool) -> Answer:
    """Join with a session timeout above group.max.session.timeout.ms."""
    stage.create(1)
    longest = 1_800_000
    with stage.stream(RATE):
        member = stage.member(
            client=CONFLUENT,
            session_timeout_ms=longest * 2 if is_faulty else 10_000,
            max_poll_interval_ms=longest * 3,
        )
        if is_faulty:
            stage.until_journal("join-refused", client=member.client_id)
        else:
            stage.until_committed(RATE)
        return ask_silent(stage, client=member.client_id)


@scenario("silent", "reads-other-partitions", "A consumer assigns itself a partition without records.")
def wrong_partition(stage: Stage, is_faulty: bool) -> Answer:
    """Assign one partition, and write to another."""
    stage.create(3)
    stage.write(stage.values(40), partition=lambda _: 2)
    client = stage.rng.choice((CONFLUENT, KAFKA_PYTHON))
    if is_faulty:
        member = stage.member(client=client, name="loner", assigns=True)
        stage.until_journal("fetch-position", client="loner")
        return ask_silent(stage, client=member.client_id, topic=stage.topic)
    member = stage.member(client=client, name="loner")
    with stage.stream(RATE, partition=lambda _: 2):
        stage.until_committed(40)
        return ask_silent(stage, client=member.client_id, topic=stage.topic)


@scenario("silent", "reads-without-group", "A consumer assigns itself all partitions, and is in no group.")
def assigns_itself(stage: Stage, is_faulty: bool) -> Answer:
    """Assign the only partition of a topic."""
    stage.create(1)
    stage.write(stage.values(40))
    member = stage.member(client=stage.rng.choice((CONFLUENT, KAFKA_PYTHON)), assigns=is_faulty)
    stage.until_seen(member, 40)
    stage.until_journal("fetch-position", client=member.client_id)
    with stage.stream(RATE):
        if not is_faulty:
            stage.until_committed(60)
        return ask_silent(stage, group=None if not is_faulty else f"{stage.group}-x", client=member.client_id)
