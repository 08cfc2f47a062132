"""All evidence about one group or one topic, gathered for a question. The causes are found by pure functions.

A group is looked at twice, some seconds apart, so that it is known what moves. Everything else is history.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.client.admin.configs import ConfigResource
from ottla.client.admin.descriptions import GroupDescription
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.errors import BrokerError, ClientError
from ottla.explain.access import Access
from ottla.explain.evidence.group_history import GroupHistory, read_group_history
from ottla.explain.evidence.journal import JournalView, read_journal
from ottla.explain.evidence.logs import LogSample, partitions_of, sample_log
from ottla.explain.evidence.readers import Doing, readers_of
from ottla.explain.evidence.replicas import ReplicaStates, read_replicas
from ottla.explain.lag.looking import GroupLook, Looks, look, with_speeds
from ottla.explain.lag.outlook import PartitionLook
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

NO_JOURNAL: Final = (
    "who fetched what, why members left, and which requests were refused: the cluster has no journal, "
    "or you may not read it (Ottla writes one unless ottla.journal.enable is false)"
)
_RECORDS_FOR_GROUPS: Final = 20_000
_TOPICS_MAX: Final = 50
"""Of so many topics it is asked where all of their partitions end."""
_GROUPS_MAX: Final = 200
_MINUTES_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that holds back readers of a partition."""

    where: TopicPartition
    producer_id: int
    first_offset: int
    transactional_id: str | None
    started_at_ms: int | None
    timeout_ms: int | None
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class GroupCase:
    """The evidence about a group."""

    group_id: str
    now_ms: int
    seconds: float
    look: GroupLook | None
    description: GroupDescription | None
    history: GroupHistory
    journal: JournalView
    topics: Mapping[str, int]
    """The number of partitions of each topic that is not internal."""
    stable_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    open_transactions: tuple[OpenTransaction, ...] = ()
    last_record_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    log: LogSample | None = None
    offsets_retention_ms: int | None = None
    """How long the offsets of an empty group are kept, if that may be known."""
    bounds: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Where partitions begin and end: all of the topics that the group, or a client without one, reads."""
    configs: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """The configs in force of the topics that the group reads."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """The groups that clients are members of, by client id."""
    groups: tuple[str, ...] = ()
    """The other groups that there are."""
    replicas: Mapping[TopicPartition, ReplicaStates] = field(default_factory=dict)
    """The replicas of the topics that the group reads, now."""
    unseen_until_ms: int | None = None
    """For a time in the past at which nothing shows that the group was there: since when something does."""

    @property
    def partitions(self) -> tuple[PartitionLook, ...]:
        """Return the partitions that the group has committed or reads."""
        return () if self.look is None else self.look.partitions

    @property
    def clients(self) -> frozenset[str]:
        """Return the client ids of all members, now and in the past."""
        names = {
            member.client_id
            for generation in self.history.generations
            for member in generation.members.values()
        }
        if self.description is not None:
            names |= {member.client_id for member in self.description.members}
        return frozenset(names)

    @property
    def looked_at(self) -> tuple[str, ...]:
        """Return what the evidence is made of, for people."""
        found = []
        if self.look is not None:
            found.append(
                f"group {self.group_id} for {self.seconds:g} s: state {self.look.state}, "
                f"{self.look.members} members, {len(self.look.partitions)} partitions"
            )
        history = self.history
        if history.is_readable:
            found.append(
                f"{len(history.commits)} commits and {len(history.generations)} changes of members in "
                "__consumer_offsets"
            )
        if self.log is not None:
            found.append(f"the newest {len(self.log.records)} records of what it reads")
        if self.journal.events:
            found.append(f"{len(self.journal.events)} lines of the journal")
        return tuple(found)

    @property
    def not_seen(self) -> tuple[str, ...]:
        """Return what could not be seen, and what would have shown it."""
        missing = [] if self.journal.exists else [NO_JOURNAL]
        if not self.history.is_readable:
            missing.append("when the group has committed what: __consumer_offsets cannot be read")
        if self.log is None and self.partitions:
            missing.append("what the records are like: they cannot be read")
        missing += [
            f"{count} events of kind {kind} in the last minutes: the journal had no room for them"
            for kind, count in self.journal.left_out(self.now_ms - _MINUTES_MS).items()
        ]
        return tuple(missing)


@dataclass(frozen=True, slots=True)
class TopicCase:
    """The evidence about a topic."""

    topic: str
    now_ms: int
    partitions: int
    sample: LogSample
    journal: JournalView
    configs: Mapping[str, str | None] = field(default_factory=dict)
    """The configs in force."""
    replicas: Mapping[TopicPartition, ReplicaStates] = field(default_factory=dict)
    """The replicas of its partitions, now."""


async def gather_topic(access: Access, topic: str) -> TopicCase:
    """Look at a topic."""
    partitions = await partitions_of(access, [topic])
    if not partitions:
        await access.admin.topics.describe(topic)
    replicas = await read_replicas(access, {topic})
    sample = await sample_log(access, _led(partitions, replicas))
    configs = (await topic_configs(access, {topic})).get(topic, {})
    journal = await read_journal(access)
    return TopicCase(topic, _now_ms(), len(partitions), sample, journal, configs, replicas)


def _led(
    places: Collection[TopicPartition], replicas: Mapping[TopicPartition, ReplicaStates]
) -> list[TopicPartition]:
    """Leave out partitions that nobody leads, and that cannot be read."""
    return [where for where in places if where not in replicas or replicas[where].leader >= 0]


async def _check_may_see(access: Access, group_id: str) -> None:
    """Refuse to call a group absent that the user may not see. Raises what the broker says."""
    try:
        await access.admin.groups.describe(group_id)
    except BrokerError as error:
        if error.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise
    except ClientError:
        return


async def gather_group(
    access: Access, group_id: str, over_s: float = 3.0, *, with_log: bool = False
) -> GroupCase:
    """Look at a group for some seconds."""
    before = await _look(access, group_id)
    if before is None:
        await _check_may_see(access, group_id)
    started = time.monotonic()
    topics = {item.name: item.partitions for item in await access.admin.topics.list() if not item.is_internal}
    history = await read_group_history(access, group_id)
    await asyncio.sleep(max(over_s - (time.monotonic() - started), 0.0))
    after = await _look(access, group_id)
    looked = None
    if after is not None:
        looked = (with_speeds(before, after) if before is not None else after).groups[0]
    description = None
    if looked is not None:
        try:
            description = await access.admin.groups.describe(group_id)
        except ClientError:
            description = None
    places = [] if looked is None else [item.lag.where for item in looked.partitions]
    places = [where for where in places if where.topic in topics]
    journal = await read_journal(access)
    named = {where.topic for where in places}
    if description is not None:
        named |= {name for member in description.members for name in member.subscribed_topics}
    replicas = await read_replicas(access, named & topics.keys())
    members = {member.client_id for member in description.members} if description is not None else set()
    read_now = [
        reader for reader in readers_of(journal) if reader.doing is not Doing.GONE or reader.client in members
    ]
    named |= {where.topic for reader in read_now for where in reader.positions}
    wanted = sorted(named & topics.keys())[:_TOPICS_MAX]
    # While a group divides its partitions, nobody has any. What its members read is known all the same.
    read = places or [where for one in read_now if one.client in members for where in one.seen]
    read = _led([where for where in read if where.topic in topics], replicas)
    log = await _log(access, read) if with_log else None
    return GroupCase(
        group_id,
        _now_ms(),
        over_s,
        looked,
        description,
        history,
        journal,
        topics,
        await _stable_ends(access, places),
        await _open_transactions(access, places),
        await _last_record_ms(access, places),
        log,
        await _offsets_retention_ms(access),
        await _bounds(access, wanted),
        await topic_configs(access, {where.topic for where in places}),
        *await _others(access, group_id),
        replicas,
    )


async def _log(access: Access, places: Collection[TopicPartition]) -> LogSample | None:
    try:
        return await sample_log(access, list(dict.fromkeys(places)), _RECORDS_FOR_GROUPS) if places else None
    except ClientError:
        # The user may not read the topic. Everything else is evidence still.
        return None


async def _look(access: Access, group_id: str) -> Looks | None:
    try:
        return await look(access, [group_id])
    except BrokerError:
        return None


async def _others(access: Access, group_id: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return which groups clients are members of, and the names of all other groups."""
    try:
        listed = [item.group_id for item in await access.admin.groups.list() if item.type != "share"]
        others = [name for name in listed if name != group_id]
        described = (await access.admin.groups.describe_many(others[:_GROUPS_MAX])).succeeded
    except ClientError:
        return {}, ()
    found = {member.client_id: name for name, one in described.items() for member in one.members}
    return found, tuple(others)


async def _bounds(access: Access, topics: Collection[str]) -> dict[TopicPartition, tuple[int, int]]:
    try:
        places = await partitions_of(access, topics)
        starts = (await access.admin.offsets.earliest(places)).succeeded
        ends = (await access.admin.offsets.latest(places)).succeeded
    except ClientError:
        return {}
    return {
        where: (starts[where].offset, ends[where].offset)
        for where in places
        if where in starts and where in ends
    }


async def topic_configs(access: Access, topics: Collection[str]) -> dict[str, dict[str, str | None]]:
    """Return the configs in force of topics, as far as they may be described."""
    try:
        found = await access.admin.configs.describe_many(
            [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)], synonyms=False
        )
    except ClientError:
        return {}
    return {
        resource.name: {name: config.value for name, config in configs.items()}
        for resource, configs in found.succeeded.items()
    }


async def _stable_ends(access: Access, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    found = await access.admin.offsets.list(dict.fromkeys(places, OffsetSpec.LATEST), read_committed=True)
    return {where: item.offset for where, item in found.succeeded.items()}


async def _last_record_ms(access: Access, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    try:
        found = await access.admin.offsets.list(dict.fromkeys(places, OffsetSpec.MAX_TIMESTAMP))
    except ClientError:
        return {}
    return {where: item.timestamp_ms for where, item in found.succeeded.items() if item.timestamp_ms >= 0}


async def _offsets_retention_ms(access: Access) -> int | None:
    name = "offsets.retention.minutes"
    try:
        broker = next(iter((await access.admin.cluster.describe()).brokers))
        found = await access.admin.configs.describe(ResourceType.BROKER, str(broker.node_id), keys=[name])
    except ClientError:
        return None
    value = found[name].value if name in found else None
    return None if value is None else int(value) * 60_000


async def _open_transactions(
    access: Access, places: Collection[TopicPartition]
) -> tuple[OpenTransaction, ...]:
    try:
        producers = (await access.admin.transactions.producers(places)).succeeded
    except ClientError:
        return ()
    open_ones = [
        (where, producer)
        for where, some in producers.items()
        for producer in some
        if producer.transaction_start_offset is not None
    ]
    if not open_ones:
        return ()
    listed = await access.admin.transactions.list(producer_ids={item.producer_id for _, item in open_ones})
    described = (
        await access.admin.transactions.describe_many([one.transactional_id for one in listed])
    ).succeeded
    by_id = {item.producer_id: item for item in described.values()}
    found = []
    for where, producer in open_ones:
        known = by_id.get(producer.producer_id)
        found.append(
            OpenTransaction(
                where,
                producer.producer_id,
                producer.transaction_start_offset or 0,
                None if known is None else known.transactional_id,
                None if known is None else known.started_at_ms,
                None if known is None else known.timeout_ms,
                producer.last_timestamp_ms,
            )
        )
    return tuple(found)


def _now_ms() -> int:
    return int(time.time() * 1000)
