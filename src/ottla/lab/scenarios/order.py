"""Records that are not in the order that somebody expects."""

import threading
import time

from ottla.explain.answer import Answer
from ottla.lab.clients import CONFLUENT, JAVA, OURS
from ottla.lab.scenario import ask_order, scenario
from ottla.lab.stage import Stage

_STARTED_S = {OURS: 2.0, CONFLUENT: 2.0, JAVA: 20.0}
"""After so long a producer of each kind has started and written. A machine in Java takes a while."""


def _keys(stage: Stage, count: int) -> list[bytes]:
    return [f"acct-{stage.rng.randrange(10**6)}".encode() for _ in range(count)]


@scenario("order", "no-key", "Records are sent without a key.")
def without_keys(stage: Stage, is_faulty: bool) -> Answer:
    """Send some or all records without a key."""
    partitions = stage.rng.randrange(2, 6)
    stage.create(partitions)
    keys = _keys(stage, 8)
    every = stage.rng.choice((1, 2, 3))
    places = [stage.rng.randrange(partitions) for _ in range(200)]
    stage.write(
        stage.values(stage.rng.randrange(60, 200)),
        keys=lambda number: None if is_faulty and number % every == 0 else keys[number % len(keys)],
        partition=lambda number: places[number] if is_faulty and number % every == 0 else None,
    )
    return ask_order(stage)


@scenario("order", "partitions-added", "A topic got more partitions.")
def more_partitions(stage: Stage, is_faulty: bool) -> Answer:
    """Add partitions between two rounds of the same keys."""
    before = stage.rng.randrange(1, 4)
    stage.create(before)
    keys = _keys(stage, 20)
    client = stage.client()

    def write() -> None:
        stage.write(
            stage.values(60),
            keys=lambda number: keys[number % 20],
            client=client,
            partitioner="murmur2_random",
        )

    write()
    if is_faulty:
        total = before + stage.rng.randrange(1, 5)
        stage.ask(lambda access: access.admin.topics.add_partitions(stage.topic, total))
        stage.until_journal("partitions-added", topic=stage.topic)
    write()
    return ask_order(stage)


@scenario("order", "another-partitioner", "Two producers choose partitions in different ways.")
def two_partitioners(stage: Stage, is_faulty: bool) -> Answer:
    """Write the same keys with librdkafka's default and with Java's."""
    stage.create(stage.rng.randrange(2, 7))
    keys = _keys(stage, 12)
    idempotent = stage.rng.choice(("true", "false"))
    for name, partitioner in (("java-like", "murmur2_random"), ("rdkafka", "consistent_random")):
        stage.write(
            stage.values(48),
            keys=lambda number: keys[number % 12],
            client="confluent",
            name=name,
            enable_idempotence=idempotent,
            partitioner=partitioner if is_faulty else "murmur2_random",
        )
    return ask_order(stage)


@scenario("order", "partition-chosen-by-application", "An application chooses partitions itself.")
def own_choice(stage: Stage, is_faulty: bool) -> Answer:
    """Send records with a key to partitions chosen by chance."""
    partitions = stage.rng.randrange(2, 6)
    stage.create(partitions)
    keys = _keys(stage, 10)
    chosen = [stage.rng.randrange(partitions) for _ in range(100)]
    stage.write(
        stage.values(100),
        keys=lambda number: keys[number % 10],
        partition=lambda number: chosen[number] if is_faulty else None,
    )
    return ask_order(stage)


@scenario("order", "sent-out-of-order", "An application sends records in another order than it made them.")
def shuffled(stage: Stage, is_faulty: bool) -> Answer:
    """Send some records with the times at which they were made, later than younger ones."""
    stage.create(stage.rng.randrange(1, 4))
    keys = _keys(stage, 5)
    now_ms = time.time_ns() // 1_000_000 - 60_000
    times = [now_ms + 50 * number for number in range(100)]
    if is_faulty:
        at = stage.rng.randrange(20, 60)
        times[at : at + 30] = reversed(times[at : at + 30])
    stage.write(
        stage.values(100),
        keys=lambda number: keys[number % len(keys)],
        timestamp=lambda number: times[number],
        enable_idempotence="true",
    )
    return ask_order(stage)


@scenario("order", "several-producers", "Two producers write the same keys.")
def two_producers(stage: Stage, is_faulty: bool) -> Answer:
    """Let one producer linger while another overtakes it."""
    stage.create(1)
    keys = _keys(stage, 3)
    stage.write(
        stage.values(5), keys=lambda number: keys[number % 3], name="early", enable_idempotence="true"
    )
    if not is_faulty:
        stage.write(
            stage.values(9), keys=lambda number: keys[number % 3], name="late", enable_idempotence="true"
        )
        return ask_order(stage)
    quick = stage.client()
    stage.node.faults.delay("produce", _STARTED_S[quick], times=1)
    values = stage.values(9)
    slow = threading.Thread(
        target=lambda: stage.write(
            values,
            keys=lambda number: keys[number % 3],
            name="slow",
            client="confluent",
            enable_idempotence="true",
        )
    )
    slow.start()
    then = time.monotonic() + 1
    stage.until(lambda: time.monotonic() > then, "the slow producer to have sent")
    stage.write(
        stage.values(9),
        keys=lambda number: keys[number % 3],
        name="quick",
        client=quick,
        enable_idempotence="true",
    )
    slow.join()
    return ask_order(stage)


@scenario("order", "retry-without-idempotence", "A batch fails and is sent again, after those behind it.")
def overtaken(stage: Stage, is_faulty: bool) -> Answer:
    """Refuse a produce request while others are in flight, to a producer without idempotence."""
    from confluent_kafka import Producer

    stage.create(1)
    producer = Producer(
        {
            "bootstrap.servers": stage.node.bootstrap,
            "client.id": "quick",
            "enable.idempotence": "false",
            "linger.ms": "0",
            "retry.backoff.ms": "400",
            "max.in.flight.requests.per.connection": "5",
            "batch.num.messages": "1",
        }
    )
    key = _keys(stage, 1)[0]
    producer.produce(stage.topic, b"before", key)
    producer.flush(60)
    if is_faulty:
        # The first request is held for a while, so that several are in flight when the second is refused.
        stage.node.faults.delay("produce", 0.5, times=1)
        stage.node.faults.refuse("produce", "not_enough_replicas", times=1)
    for value in stage.values(stage.rng.randrange(4, 9)):
        producer.produce(stage.topic, value, key)
        producer.poll(0)
        then = time.monotonic() + 0.05
        stage.until(lambda then=then: time.monotonic() > then, "the next record")  # type: ignore[misc]
    producer.flush(60)
    return ask_order(stage)


@scenario("order", "clocks-differ", "The clock of a producer is ahead.")
def clock_ahead(stage: Stage, is_faulty: bool) -> Answer:
    """Write with timestamps of a clock that is minutes ahead."""
    stage.create(stage.rng.randrange(1, 3))
    keys = _keys(stage, 4)
    ahead_ms = stage.rng.randrange(60_000, 1_200_000)

    def ahead(_number: int) -> int | None:
        return int(time.time() * 1000) + ahead_ms if is_faulty else None

    stage.write(
        stage.values(20), keys=lambda number: keys[number % 4], name="ahead", timestamp=ahead, client="ours"
    )
    stage.until_journal("appended-at")
    stage.write(stage.values(20), keys=lambda number: keys[number % 4], name="right", client="ours")
    stage.until_journal("appended-at")
    return ask_order(stage)


@scenario("order", "clocks-differ", "The clock of one of two hosts is behind.")
def clock_behind(stage: Stage, is_faulty: bool) -> Answer:
    """Write in turn from two hosts, one of which is hours behind."""
    stage.create(1)
    keys = _keys(stage, 2)
    behind_ms = stage.rng.randrange(600_000, 10_000_000) if is_faulty else 0
    for turn in range(8):
        late = turn % 2
        stage.write(
            stage.values(2),
            keys=lambda number: keys[number % 2],
            timestamp=lambda _, late=late: int(time.time() * 1000) - behind_ms * late,  # type: ignore[misc]
            name=f"host-{'ab'[late]}",
            client="confluent",
        )
        end = 2 * turn + 2
        stage.until(lambda end=end: stage.journal_end() >= end, "the journal to see it")  # type: ignore[misc]
    return ask_order(stage)


@scenario("order", "keys-changed", "A deploy writes keys in another form.")
def other_keys(stage: Stage, is_faulty: bool) -> Answer:
    """Write records about the same things, with keys of another form from some time on."""
    stage.create(4)
    for form in ("{}", "user-{}" if is_faulty else "{}"):
        names = [form.format(number % 12).encode() for number in range(60)]
        stage.write(stage.values(60), keys=names.__getitem__, name="api")
    return ask_order(stage)
