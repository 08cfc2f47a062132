"""Records that are written or delivered twice."""

from collections.abc import Callable

from ottla.client.admin.offsets import OffsetSpec
from ottla.explain.access import Access
from ottla.explain.answer import Answer
from ottla.lab.scenario import ask_topic_twice, ask_twice, scenario
from ottla.lab.stage import Member, Stage
from ottla.model.ids import TopicPartition


@scenario("twice", "poll-interval-exceeded", "A consumer takes too long between two polls.")
def polls_too_seldom(stage: Stage, is_faulty: bool) -> Answer:
    """Let a member work for longer than its poll interval, while another waits to take over."""
    _write_some(stage)
    client = stage.client()
    slow = stage.member(
        client=client, commits="never", max_poll_interval_ms=6_000, session_timeout_ms=6_000, name="slow"
    )
    stage.until_seen(slow, 10)
    stage.until_journal("fetch-position", client="slow")
    if is_faulty:
        slow.order("hang")
        stage.until_journal("member-left", group=stage.group)
    else:
        slow.order("commit")
        slow.close()
    return _ask_after_takeover(stage, client, is_faulty)


@scenario("twice", "crash-before-commit", "A consumer dies before it has committed what it has read.")
def dies(stage: Stage, is_faulty: bool) -> Answer:
    """Kill a member."""
    return _lose_member(stage, is_faulty, Member.kill)


@scenario("twice", "session-expired", "A consumer is frozen for longer than its session.")
def frozen(stage: Stage, is_faulty: bool) -> Answer:
    """Stop the process of a member, as a paused machine would."""
    return _lose_member(stage, is_faulty, Member.freeze)


@scenario("twice", "commit-refused", "A consumer that assigns partitions to itself shares a group.id.")
def commits_as_a_stranger(stage: Stage, is_faulty: bool) -> Answer:
    """Let a consumer that has not joined commit for a group with members, under the same client.id."""
    count = _write_some(stage)
    client = stage.client()
    stage.member(client=client, name="reader")
    stage.until_committed(count)
    group = stage.group if is_faulty else f"{stage.group}-apart"
    stranger = stage.member(client=client, name="reader", group=group, assigns=True)
    stage.until_seen(stranger, 10)
    if is_faulty:
        stage.until_journal("request-refused", api="offset_commit")
    return ask_twice(stage)


@scenario("twice", "offsets-deleted", "The committed offsets of a group were deleted.")
def deleted_offsets(stage: Stage, is_faulty: bool) -> Answer:
    """Delete the offsets of an empty group."""
    count = _write_some(stage)
    _read_and_stop(stage, count)
    where = TopicPartition(stage.topic, 0)
    if is_faulty:
        stage.ask(lambda access: access.admin.group_offsets.delete(stage.group, [where]))
    _start_again(stage, count, is_faulty)
    if is_faulty:
        stage.until_committed(count)
    return ask_twice(stage)


@scenario(
    "twice",
    "offsets-expired",
    "A group was stopped for longer than its offsets are kept.",
    {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"},
)
def stopped_for_long(stage: Stage, is_faulty: bool) -> Answer:
    """Leave a group empty for a minute, which is how long its offsets are kept."""
    count = _write_some(stage)
    _read_and_stop(stage, count)
    if is_faulty:
        stage.until(lambda: not stage.committed(), "the offsets to expire")
    _start_again(stage, count, is_faulty)
    if is_faulty:
        stage.until_committed(count)
    return ask_twice(stage)


@scenario("twice", "left-before-commit", "A consumer closes without committing.")
def closes_without_commit(stage: Stage, is_faulty: bool) -> Answer:
    """Close a member that has not committed."""
    count = _write_some(stage)
    client = stage.client()
    first = stage.member(client=client, commits="never", name="first")
    stage.until_seen(first, count)
    stage.until(
        lambda: (
            stage.until_journal("fetch-position", client="first").facts["at"] == {f"{stage.topic}/0": count}
        ),
        "the position of first",
    )
    if not is_faulty:
        first.order("commit")
        stage.until_committed(count)
    first.close()
    stage.until_journal("member-left", group=stage.group)
    return _ask_after_takeover(stage, client, is_faulty)


@scenario("twice", "offsets-reset", "Somebody has reset the offsets of a group.")
def reset(stage: Stage, is_faulty: bool) -> Answer:
    """Reset an empty group to the beginning."""
    partitions = stage.rng.randrange(1, 4)
    stage.create(partitions)
    count = stage.rng.randrange(30, 100)
    stage.write(stage.values(count), partition=lambda number: number % partitions)
    _read_and_stop(stage, count)

    async def back(access: Access) -> None:
        plan = await access.admin.group_offsets.plan_reset(stage.group, to=OffsetSpec.EARLIEST)
        (await access.admin.group_offsets.alter(stage.group, plan)).check()

    if is_faulty:
        stage.ask(back)
    _start_again(stage, count, is_faulty)
    return ask_twice(stage)


@scenario(
    "twice", "committed-too-low", "An application commits the offset of the last record, not of the next."
)
def commits_the_last_record(stage: Stage, is_faulty: bool) -> Answer:
    """Let three members, one after another, read to the end and commit by hand."""
    end = _write_some(stage)
    left = end
    for _ in range(3):
        _read_and_commit(stage, left, end - 1 if is_faulty else end)
        left = 1 if is_faulty else 0
    return ask_twice(stage)


@scenario("twice", "seek-back", "A consumer goes back by itself.")
def seeks(stage: Stage, is_faulty: bool) -> Answer:
    """Let a member seek to the beginning."""
    count = _write_some(stage)
    member = stage.member()
    stage.until_committed(count)
    if is_faulty:
        member.order("seek 0")
        stage.until_seen(member, count + 10)
    return ask_twice(stage)


@scenario("twice", "zombie-fenced", "Two processes use the same group.instance.id.")
def zombie(stage: Stage, is_faulty: bool) -> Answer:
    """Start a second member under the same name."""
    stage.create(2)
    stage.write(stage.values(60), partition=lambda number: number % 2)
    first = stage.member(name="till-a", group_instance_id="till", client="confluent")
    stage.until_committed(60)
    other = "till" if is_faulty else "till-2"
    stage.member(name="till-b", group_instance_id=other, client="confluent")
    with stage.stream(20):
        if is_faulty:
            stage.until_journal("request-refused", error="FENCED_INSTANCE_ID")
        else:
            stage.until_joined(2)
        assert first.client_id == "till-a"
        return ask_twice(stage)


@scenario(
    "twice", "produced-twice-by-retry", "An answer is lost, and a producer without idempotence sends again."
)
def retried(stage: Stage, is_faulty: bool) -> Answer:
    """Lose the answer to a produce request."""
    stage.create(stage.rng.randrange(1, 4))
    stage.write(stage.values(20), client="confluent")
    if is_faulty:
        stage.node.faults.lose_answer("produce", times=1)
    stage.write(
        stage.values(stage.rng.randrange(5, 40)),
        client="confluent",
        enable_idempotence="false",
        retry_backoff_ms=50,
        partitioner="consistent_random",
        keys=lambda _: b"k",
    )
    return ask_topic_twice(stage)


@scenario(
    "twice",
    "produced-by-two-producers",
    "A producer restarts and sends again what it does not know to be written.",
)
def restarted_producer(stage: Stage, is_faulty: bool) -> Answer:
    """Write the last values once more with a new producer."""
    stage.create(stage.rng.randrange(1, 4))
    values = stage.values(stage.rng.randrange(20, 80))
    number = {value: index for index, value in enumerate(values)}
    client = stage.client()
    stage.write(values, client=client, enable_idempotence="true", keys=lambda index: b"%d" % index)
    cut = len(values) - stage.rng.randrange(2, 10)
    again = values[cut:] if is_faulty else stage.values(10)
    stage.write(
        again,
        client=client,
        enable_idempotence="true",
        keys=lambda index: b"%d" % number.get(again[index], index),
    )
    return ask_topic_twice(stage)


@scenario("twice", "produced-twice-by-application", "An application sends some records twice.")
def sent_twice(stage: Stage, is_faulty: bool) -> Answer:
    """Send some values twice with one producer."""
    stage.create(stage.rng.randrange(1, 4))
    values = stage.values(stage.rng.randrange(20, 80))
    if is_faulty:
        at = stage.rng.randrange(1, len(values))
        values = values[:at] + values[at - 1 :]
    stage.write(values, enable_idempotence="true", keys=lambda _: b"k")
    return ask_topic_twice(stage)


# Steps that several scenarios have in common


def _write_some(stage: Stage) -> int:
    """Create a topic with some records in it, and return how many."""
    stage.create(1)
    count = stage.rng.randrange(30, 100)
    stage.write(stage.values(count))
    return count


def _read_and_commit(stage: Stage, count: int, offset: int) -> None:
    """Join, read so many records, commit an offset, and leave."""
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Position

    consumer = Consumer(
        {
            "bootstrap.servers": stage.node.bootstrap,
            "group.id": stage.group,
            "client.id": "payroll",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
    )
    consumer.subscribe([stage.topic])
    seen: list[int | None] = []

    def is_read() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append(message.offset())
        return len(seen) >= count and bool(consumer.assignment())

    stage.until(is_read, f"{count} records")
    consumer.commit(offsets=[Position(stage.topic, 0, offset)], asynchronous=False)
    consumer.close()


def _lose_member(stage: Stage, is_faulty: bool, lose: Callable[[Member], None]) -> Answer:
    """Let a member disappear before it commits, until its session ends, and another one take over."""
    _write_some(stage)
    client = stage.client()
    victim = stage.member(
        client=client, commits="never" if is_faulty else "each", session_timeout_ms=3_000, name="victim"
    )
    stage.until_seen(victim, 20)
    stage.until_journal("fetch-position", client="victim")
    if is_faulty:
        lose(victim)
        stage.until_journal("member-left", group=stage.group, why="session")
    else:
        victim.close()
    return _ask_after_takeover(stage, client, is_faulty)


def _ask_after_takeover(stage: Stage, client: str, is_faulty: bool) -> Answer:
    """Start another member, which reads again what was not committed, and ask."""
    other = stage.member(client=client, name="other")
    stage.until_seen(other) if is_faulty else stage.until_joined(1)
    stage.until_journal("fetch-position", client="other")
    return ask_twice(stage)


def _read_and_stop(stage: Stage, count: int) -> None:
    """Read all records with a member, commit, and leave the group empty."""
    member = stage.member()
    stage.until_committed(count)
    member.close()
    stage.until_journal("member-left", group=stage.group)


def _start_again(stage: Stage, count: int, is_faulty: bool) -> None:
    """Start a member in the group, which reads everything again if the offsets are gone."""
    again = stage.member(name="again")
    stage.until_joined(1)
    if is_faulty:
        stage.until_seen(again, count)


@scenario("twice", "aborted-records-read", "A transaction was aborted and sent again; a reader gets both.")
def reads_aborted(stage: Stage, is_faulty: bool) -> Answer:
    """Abort a transaction, send its records again, and read uncommitted records."""
    from confluent_kafka import Producer

    stage.create(1)
    producer = Producer({"bootstrap.servers": stage.node.bootstrap, "transactional.id": "till"})
    producer.init_transactions(60)
    values = stage.values(stage.rng.randrange(5, 40))
    for aborts in (True, False):
        producer.begin_transaction()
        for value in values:
            producer.produce(stage.topic, value, b"k")
        producer.flush(60)
        if aborts:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    isolation = "read_uncommitted" if is_faulty else "read_committed"
    member = stage.member(client="confluent", isolation_level=isolation)
    stage.until_seen(member, len(values) * (2 if is_faulty else 1))
    stage.until_journal("fetch-position", client=member.client_id)
    return ask_twice(stage)


@scenario("twice", "produced-by-two-producers", "An importer without idempotence ran twice.")
def imported_twice(stage: Stage, is_faulty: bool) -> Answer:
    """Write the same lines with two processes of the same client id."""
    stage.create(1)
    lines = stage.values(stage.rng.randrange(20, 60))
    for number in range(2):
        keys = [f"{number if not is_faulty else 0}-{line:03}".encode() for line in range(len(lines))]
        stage.write(lines, keys=lambda line, keys=keys: keys[line], name="importer", client="confluent")  # type: ignore[misc]
        stage.until(
            lambda number=number: stage.count_journal("writes", client="importer", closed=True) > number,  # type: ignore[misc]
            "the importer to be gone",
        )
    return ask_topic_twice(stage)


@scenario("twice", "equal-values", "Somebody says the same twice, without keys.")
def says_it_again(stage: Stage, is_faulty: bool) -> Answer:
    """Write some equal values without keys: whether they are duplicates, nobody knows."""
    stage.create(1)
    values = stage.values(30)
    stage.write(values + (values[:5] if is_faulty else []))
    return ask_topic_twice(stage)


@scenario("twice", "seek-back", "An application goes back to records that it has committed.")
def goes_back(stage: Stage, is_faulty: bool) -> Answer:
    """Seek back, while commits only go forward."""
    stage.create(1)
    count = stage.rng.randrange(60, 120)
    stage.write(stage.values(count))
    member = stage.member(client="confluent", commits="each", work_ms=50, queued_max_messages_kbytes=1)
    stage.until_committed(count)
    stage.until_position(member, count)
    member.order("commits never")
    if is_faulty:
        member.order("seek 20")
        stage.until_seen(member, 2 * count - 20)
    stage.write(stage.values(5))
    stage.until_position(member, count + 5)
    return ask_twice(stage)
