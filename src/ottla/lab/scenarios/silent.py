"""Consumers that get nothing."""

import time

from ottla.client.errors import raise_for
from ottla.client.sync import Producer
from ottla.explain.access import Access
from ottla.explain.answer import Answer
from ottla.explain.evidence.journal import read_journal
from ottla.lab.scenario import ask_silent, scenario
from ottla.lab.stage import Member, Stage
from ottla.model.ids import TopicPartition
from ottla.security.rights import Operation, ResourceType
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest

RATE = 50


def _reads(stage: Stage, partitions: int | None = None, **settings: object) -> Member:
    """Create a topic with some records, and a member that reads and commits them."""
    stage.create(partitions or stage.rng.randrange(1, 4))
    count = stage.rng.randrange(20, 200)
    stage.write(stage.values(count))
    member = stage.member(**settings)  # type: ignore[arg-type]
    stage.until_committed(count)
    return member


@scenario("silent", "no-such-group", "Somebody asks for a group whose name is misspelt.")
def wrong_group_name(stage: Stage, is_faulty: bool) -> Answer:
    """Ask for a group that is written differently."""
    _reads(stage)
    with stage.stream(RATE):
        return ask_silent(stage, stage.group.replace("-", "_") if is_faulty else stage.group)


@scenario("silent", "not-a-member", "Somebody asks for a consumer that is in another group.")
def in_another_group(stage: Stage, is_faulty: bool) -> Answer:
    """Ask for a client that has joined another group."""
    member = _reads(stage)
    other = stage.member(name="elsewhere", group=f"{stage.group}-2")
    stage.until_joined(1, f"{stage.group}-2")
    with stage.stream(RATE):
        return ask_silent(stage, client=other.client_id if is_faulty else member.client_id)


@scenario("silent", "no-members", "The last consumer of a group has ended, and nobody noticed.")
def nobody_there(stage: Stage, is_faulty: bool) -> Answer:
    """Let the only member leave."""
    member = _reads(stage)
    if is_faulty:
        member.close()
    with stage.stream(RATE):
        if is_faulty:
            stage.until_journal("member-left", group=stage.group)
        return ask_silent(stage)


@scenario("silent", "topic-missing", "A consumer subscribes to a topic that does not exist.")
def missing_topic(stage: Stage, is_faulty: bool) -> Answer:
    """Subscribe to a name that nobody has created."""
    stage.create(2)
    topic = f"{stage.topic}-x" if is_faulty else stage.topic
    with stage.stream(RATE):
        member = stage.member(topics=[topic])
        if is_faulty:
            # A member written with confluent-kafka does not even join.
            stage.until_journal("topic-unknown", client=member.client_id)
        else:
            stage.until_seen(member, 50)
        return ask_silent(stage, client=member.client_id)


@scenario("silent", "more-members-than-partitions", "A group has more members than its topic has partitions.")
def too_many_members(stage: Stage, is_faulty: bool) -> Answer:
    """Start more members than there are partitions."""
    partitions = stage.rng.randrange(1, 3)
    stage.create(partitions)
    members = partitions + stage.rng.randrange(1, 3) if is_faulty else partitions
    client = stage.client()
    for _ in range(members):
        stage.member(client=client)
    stage.until_joined(members)
    with stage.stream(RATE, partition=lambda number: number % partitions):
        stage.until_committed(RATE)
        return ask_silent(stage)


@scenario("silent", "partitions-without-member", "Partitions were added that a group does not know yet.")
def grown(stage: Stage, is_faulty: bool) -> Answer:
    """Add partitions to a topic that a member reads."""
    stage.create(1)
    stage.member()
    stage.until_joined(1)
    with stage.stream(RATE, partition=lambda _number: 0):
        stage.until_committed(RATE)
        if is_faulty:
            stage.ask(lambda access: access.admin.topics.add_partitions(stage.topic, 2))
        return ask_silent(stage)


@scenario("silent", "open-transaction", "A transaction that nobody ends holds back all readers.")
def held_back(stage: Stage, is_faulty: bool) -> Answer:
    """Leave a transaction open, and write more after it."""
    _reads(stage, 1, isolation_level="read_committed")
    properties = {
        "bootstrap.servers": stage.node.bootstrap,
        "transactional.id": f"tx-{stage.rng.randrange(1000)}",
        "client.id": "till",
    }
    with Producer(properties=properties) as producer:
        producer.begin_transaction()
        for value in stage.values(3):
            producer.send(stage.topic, value, partition=0)
        producer.flush()
        if not is_faulty:
            producer.commit_transaction()
        with stage.stream(RATE):
            if is_faulty:
                stage.until(lambda: stage.ask(_oldest_open_ms) > 6_000, "the transaction to get old")
            else:
                stage.until_journal("appended-at")
            answer = ask_silent(stage)
        if is_faulty:
            producer.abort_transaction()
    return answer


async def _oldest_open_ms(access: Access) -> float:
    """Return for how long the oldest transaction is open."""
    listed = await access.admin.transactions.list()
    described = await access.admin.transactions.describe_many([item.transactional_id for item in listed])
    started = [item.started_at_ms for item in described.succeeded.values() if item.started_at_ms]
    return time.time() * 1000 - min(started, default=time.time() * 1000)


@scenario("silent", "offset-out-of-range", "Records were deleted before a group has read them.")
def deleted_records(stage: Stage, is_faulty: bool) -> Answer:
    """Delete records that are not read yet, and let the member come back without a reset policy."""
    client = stage.client()
    never = "error" if client == "confluent" else "none"
    member = _reads(stage, 1, client=client)
    member.close()
    stage.write(stage.values(30))
    if is_faulty:
        end = len(member.seen) + 20
        where = TopicPartition(stage.topic, 0)
        stage.ask(lambda access: access.admin.records.delete({where: end}))
    stage.member(client=client, auto_offset_reset=never)
    stage.until_joined(1)
    with stage.stream(RATE):
        if is_faulty:
            stage.until_journal("request-refused", error="OFFSET_OUT_OF_RANGE")
        else:
            stage.until_committed(len(member.seen) + 30)
        return ask_silent(stage)


@scenario("silent", "paused", "A consumer has paused its partitions and never resumed them.")
def paused(stage: Stage, is_faulty: bool) -> Answer:
    """Pause a member that has read everything so far."""
    member = _reads(stage, 1)
    if is_faulty:
        member.order("pause")
    with stage.stream(RATE):
        if is_faulty:
            stage.until_journal("fetch-stopped", client=member.client_id)
        return ask_silent(stage)


@scenario("silent", "stuck-processing", "A consumer hangs in the processing of a record.")
def stuck(stage: Stage, is_faulty: bool) -> Answer:
    """Let a member hang with records that it has fetched."""
    client = stage.client()
    settings = {"queued_min_messages": 1} if client == "confluent" else {}
    member = _reads(stage, 1, client=client, **settings)
    with stage.stream(RATE * 10):
        stage.until_seen(member, len(member.seen) + 30)
        if is_faulty:
            member.order("hang")
            stage.until_journal("fetch-stopped", client=member.client_id)
        return ask_silent(stage)


@scenario("silent", "throttled", "A consumer is far over its quota.")
def throttled_reader(stage: Stage, is_faulty: bool) -> Answer:
    """Set a tiny quota for a client that has much to read."""
    stage.create(1)
    stage.write([b"x" * 20_000 + value for value in stage.values(60)])
    if is_faulty:
        limit(stage, "reader-1", "consumer_byte_rate", 20_000)
    stage.member()
    if is_faulty:
        stage.until(lambda: throttled_ms(stage) > 6_000, "the throttling")
    else:
        stage.until_committed(60)
    with stage.stream(RATE / 10):
        return ask_silent(stage)


def limit(stage: Stage, client_id: str, quota: str, value: float) -> None:
    """Set a quota of a client."""

    async def set_quota(access: Access) -> None:
        await access.admin.quotas.alter(frozenset({("client-id", client_id)}), {quota: value})

    stage.ask(set_quota)


def throttled_ms(stage: Stage) -> int:
    """Return for how long clients had to wait so far."""
    view = stage.ask(read_journal)
    return sum(int(event.facts.get("ms", 0)) for event in view.of("throttled"))


@scenario("silent", "end-of-log", "Nobody writes any more.")
def nothing_written(stage: Stage, is_faulty: bool) -> Answer:
    """Ask about a group that has read everything, a while after the last record."""
    _reads(stage)
    if is_faulty:
        then = time.monotonic() + 6
        stage.until(lambda: time.monotonic() > then, "silence")
        return ask_silent(stage)
    with stage.stream(RATE):
        return ask_silent(stage)


@scenario("silent", "reads-without-committing", "A consumer reads everything and never commits.")
def never_commits(stage: Stage, is_faulty: bool) -> Answer:
    """Read without committing."""
    stage.create(1)
    stage.write(stage.values(40))
    member = stage.member(commits="each")
    stage.until_committed(40)
    member.close()
    member = stage.member(commits="never" if is_faulty else "each", name="reader-9")
    stage.until_joined(1)
    with stage.stream(RATE):
        stage.until_seen(member, 60)
        if is_faulty:
            then = time.monotonic() + 11
            stage.until(lambda: time.monotonic() > then, "commits to be overdue")
        return ask_silent(stage)


@scenario("silent", "another-topic", "A consumer reads another topic than the one that was meant.")
def another_topic(stage: Stage, is_faulty: bool) -> Answer:
    """Ask for a topic that nobody in the group has subscribed to."""
    other = stage.create(1, f"{stage.topic}-copy")
    _reads(stage)
    with stage.stream(RATE):
        return ask_silent(stage, topic=other if is_faulty else stage.topic)


@scenario("silent", "pattern-matches-nothing", "The pattern of a consumer matches no topic.")
def wrong_pattern(stage: Stage, is_faulty: bool) -> Answer:
    """Subscribe to a pattern with a typing error, with the newer protocol."""
    stage.create(2)
    pattern = f"^{stage.topic}.x+$" if is_faulty else f"^{stage.topic[:-1]}.*$"
    with stage.stream(RATE):
        member = stage.member(topics=[pattern], client="ours", group_protocol="consumer")
        stage.until_joined(1)
        if not is_faulty:
            stage.until_seen(member, 50)
        return ask_silent(stage)


_ALLOWED = 3
_EVERYBODY = "User:*"


@scenario(
    "silent",
    "not-authorized",
    "A consumer may not read the topic any more.",
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    },
)
def no_rights(stage: Stage, is_faulty: bool) -> Answer:
    """Let access rules hold for a topic that do not name the right to read."""
    _reads(stage, 1)
    operations = [Operation.DESCRIBE, Operation.WRITE] + ([] if is_faulty else [Operation.READ])

    async def add_rules(access: Access) -> None:
        rules = tuple(
            AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name=stage.topic,
                principal=_EVERYBODY,
                host="*",
                operation=operation,
                permission_type=_ALLOWED,
            )
            for operation in operations
        )
        connection = await access.cluster.any_connection()
        answer = await connection.ask(CreateAclsRequest(creations=rules))
        for result in answer.results:
            raise_for(result.error_code, "cannot add a rule")

    stage.ask(add_rules)
    with stage.stream(RATE):
        if is_faulty:
            stage.until_journal("request-refused", error="TOPIC_AUTHORIZATION_FAILED", api="fetch")
        return ask_silent(stage)
