"""Groups that fall behind, and producers that are slow."""

from contextlib import ExitStack

from ottla.client.sync import Producer
from ottla.explain.answer import Answer
from ottla.explain.causes.slow import SLOW_SYNCS_MIN
from ottla.explain.evidence.journal import read_journal
from ottla.explain.lag.looking import look
from ottla.explain.lag.outlook import total
from ottla.lab.scenario import ask_slow, ask_topic_slow, scenario
from ottla.lab.scenarios.silent import limit, throttled_ms
from ottla.lab.stage import Stage

LAG = 150


def _until_behind(stage: Stage, topics: int = 1) -> None:
    """Wait until the group has a lag and the journal has positions."""

    def behind() -> bool:
        looks = stage.ask(lambda access: look(access, [stage.group]))
        partitions = looks.groups[0].partitions
        lag = total(item.lag.lag for item in partitions) or 0
        has_begun = sum(item.lag.committed is not None for item in partitions) >= topics
        return lag > 2 * LAG and has_begun

    stage.until(behind, "a lag")
    stage.until_journal("fetch-position")


@scenario("slow", "slow-processing", "Each record takes too long to process.")
def slow_processing(stage: Stage, is_faulty: bool) -> Answer:
    """Give each partition a member that works for longer than records come."""
    partitions = stage.rng.randrange(1, 3)
    stage.create(partitions)
    work_ms = stage.rng.randrange(15, 40) if is_faulty else 0
    client = stage.client()
    for _ in range(partitions):
        stage.member(client=client, work_ms=work_ms)
    stage.until_joined(partitions)
    rate = (200 if is_faulty else 40) * partitions
    with stage.stream(rate, partition=lambda number: number % partitions):
        if is_faulty:
            _until_behind(stage, partitions)
        else:
            stage.until_committed(100)
        return ask_slow(stage)


@scenario("slow", "too-few-members", "A group has too few members for its partitions.")
def too_few_members(stage: Stage, is_faulty: bool) -> Answer:
    """Let one member read many partitions."""
    partitions = stage.rng.randrange(3, 7)
    stage.create(partitions)
    members = 1 if is_faulty else 2
    for _ in range(members):
        stage.member(work_ms=8 if is_faulty else 0, client="confluent")
    stage.until_joined(members)
    rate = 300 if is_faulty else 60
    with stage.stream(rate, partition=lambda number: number % partitions):
        if is_faulty:
            _until_behind(stage, partitions)
        else:
            stage.until_committed(60)
        return ask_slow(stage)


@scenario("slow", "hot-partition", "One key carries most of the load.")
def hot_key(stage: Stage, is_faulty: bool) -> Answer:
    """Give one key most of the records."""
    partitions = stage.rng.randrange(3, 6)
    stage.create(partitions)
    names = [f"shop-{stage.rng.randrange(10**6)}".encode() for _ in range(30)]
    heat = stage.rng.choice((0.8, 0.9, 0.95))
    weights = [heat if index == 0 else (1 - heat) / 29 for index in range(30)] if is_faulty else None
    order = stage.rng.choices(names, weights, k=2000)
    client = stage.client()
    for _ in range(partitions):
        stage.member(client=client, work_ms=8 if is_faulty else 0)
    stage.until_joined(partitions)
    with stage.stream(300 if is_faulty else 60, keys=lambda number: order[number % 2000]):
        if is_faulty:
            _until_behind(stage)
        else:
            stage.until_committed(60)
        return ask_slow(stage)


@scenario("slow", "skewed-assignment", "One member has most of the partitions.")
def skewed(stage: Stage, is_faulty: bool) -> Answer:
    """Let the range assignor give one member the only partition of each topic."""
    topics = [stage.create(1, f"{stage.topic}-{letter}") for letter in "abcd"]
    strategy = "range" if is_faulty else "roundrobin"
    for _ in range(2):
        stage.member(
            client="confluent",
            topics=topics,
            partition_assignment_strategy=strategy,
            work_ms=10 if is_faulty else 0,
        )
    stage.until_joined(2)
    with ExitStack() as streams:
        for topic in topics:
            streams.enter_context(stage.stream(60 if is_faulty else 20, topic=topic))
        if is_faulty:
            _until_behind(stage, len(topics))
        else:
            for topic in topics:
                stage.until_committed(10, topic)
        return ask_slow(stage)


@scenario("slow", "slow-fetching", "The network between a consumer and its broker is slow.")
def slow_network(stage: Stage, is_faulty: bool) -> Answer:
    """Delay each fetch, and let it bring one small batch."""
    stage.create(1)
    stage.member(
        client="confluent", max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000, message_max_bytes=1_000
    )
    stage.until_joined(1)
    with ExitStack() as slowed, stage.stream(400 if is_faulty else 40):
        stage.until_committed(10)
        if is_faulty:
            slowed.enter_context(stage.node.faults.delay("fetch", 0.15))
            _until_behind(stage)
        else:
            stage.until_committed(60)
        return ask_slow(stage)


@scenario("slow", "too-many-rebalances", "Members come and go all the time.")
def restless(stage: Stage, is_faulty: bool) -> Answer:
    """Let members join and leave, again and again."""
    stage.create(2)
    work_ms = 30 if is_faulty else 0
    stage.member(client="confluent", work_ms=work_ms)
    stage.until_joined(1)
    with stage.stream(200 if is_faulty else 40, partition=lambda number: number % 2):
        stage.until_committed(10)
        for number in range(4 if is_faulty else 1):
            guest = stage.member(client="confluent", work_ms=work_ms, name=f"guest-{number}")
            stage.until_joined(2)
            guest.close()
            stage.until_joined(1)
        if is_faulty:
            _until_behind(stage)
        return ask_slow(stage)


@scenario("slow", "throttled", "A group is slowed down by a quota.")
def throttled(stage: Stage, is_faulty: bool) -> Answer:
    """Limit how many bytes a reader may fetch."""
    stage.create(1)
    stage.write([b"y" * 4_000 + value for value in stage.values(600)])
    member = stage.member(max_partition_fetch_bytes=40_000, work_ms=2)
    stage.until_seen(member, 5)
    if is_faulty:
        limit(stage, "reader-1", "consumer_byte_rate", 60_000)
        stage.write([b"z" * 4_000 + value for value in stage.values(1500)])
        stage.until(lambda: throttled_ms(stage) > 1_500, "the throttling")
    else:
        stage.until_committed(600)
    return ask_slow(stage)


@scenario("slow", "slow-syncs", "The disk of a broker is slow.", {"ottla.acks.all.sync": "true"})
def slow_disk(stage: Stage, is_faulty: bool) -> Answer:
    """Let each sync take so long that writers notice it."""
    stage.create(stage.rng.randrange(1, 4))
    with ExitStack() as slowed, stage.stream(200, acks="all"):
        if is_faulty:
            slowed.enter_context(stage.node.faults.slow_disk(stage.rng.uniform(0.2, 0.5)))
            stage.until(lambda: _slow_syncs(stage) >= SLOW_SYNCS_MIN, "slow syncs")
        else:
            stage.until_journal("appended-at")
        return ask_topic_slow(stage)


def _slow_syncs(stage: Stage) -> int:
    """Return how many syncs were slow so far."""
    return sum(int(event.facts["count"]) for event in stage.ask(read_journal).of("sync-slow"))


@scenario("slow", "tiny-batches", "A producer sends each record alone.")
def tiny_batches(stage: Stage, is_faulty: bool) -> Answer:
    """Wait for each record before the next is sent."""
    stage.create(1)
    if not is_faulty:
        stage.write(stage.values(2000), linger_ms=50)
        return ask_topic_slow(stage)
    with Producer(properties={"bootstrap.servers": stage.node.bootstrap, "linger.ms": "0"}) as producer:
        for value in stage.values(400):
            producer.send_and_wait(stage.topic, value)
    return ask_topic_slow(stage)
