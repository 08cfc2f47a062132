"""Our controller and Apache Kafka's, side by side: both decide, and what they decide is compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tests.java.control_managers import ControlManagers, Outcome
from tests.support.deciding import CLUSTER_ID, SESSION_TIMEOUT_MS, DecidingController

from ottla.metadata.record_versions import record_version
from ottla.metadata.topics import Topics
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.fencing import FENCE, fence_incarnation
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.quorum.controller.deciders import find_decider
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.partitions.elections import elect_preferred_leaders, elect_unclean_leaders
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import fields_of, replace, spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord
from ottla.wire.metadata_records.framing import MetadataRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord
from ottla.wire.metadata_records.topics import TopicRecord

Task = Callable[[ControllerView, int], Sequence[Any]]
ELECTIONS: Mapping[str, Task] = {"balance": elect_preferred_leaders, "unclean": elect_unclean_leaders}


class ToldRandom:
    """Answers as the Java side does, and gives the ids that it was told."""

    def __init__(self, answer: int) -> None:
        self._answer = answer
        self.ids: list[bytes] = []

    def randbytes(self, n: int) -> bytes:
        assert n == 16
        return self.ids.pop(0)

    def randrange(self, stop: int, /) -> int:
        return self._answer % stop

    def shuffle(self, x: list[Any]) -> None:
        for last in range(len(x) - 1, 0, -1):
            other = self.randrange(last + 1)
            x[last], x[other] = x[other], x[last]


class Twins:
    """Both controllers, in the same state after every step."""

    def __init__(self, kafka: ControlManagers, features: Mapping[str, int], random: int) -> None:
        self._kafka = kafka
        kafka.begin(features, CLUSTER_ID, SESSION_TIMEOUT_MS, random)
        self.random = ToldRandom(random)
        self.ours = DecidingController((), features)
        self.ours.random = self.random

    def ask(self, request: Any, version: int) -> Any:
        """Let both decide about a request, and return our response."""
        key = spec_of(type(request)).api_key
        assert key is not None
        api = api_of(ApiKey(key))
        theirs = self._kafka.ask(request, api.response, version)
        created = [one.record.topic_id for one in theirs.records if isinstance(one.record, TopicRecord)]
        self.random.ids = [bytes(topic_id) for topic_id in created]
        before = self.ours.image.topics
        reply = self.ours.ask(find_decider(type(request)).decide, request)
        theirs = self._without_repetition(theirs)
        self._compare(request, before, self.ours.records, theirs)
        ours, expected = without_messages(reply), theirs.reply
        if isinstance(expected, ErrorCode):
            assert reply.error_code is expected, f"{request}\n{reply}"
        else:
            assert ours == without_messages(expected), f"{request}\n{reply}\n{expected}"
        return reply

    def replay(self, *records: Any) -> None:
        """Have both apply records that nobody decided."""
        versions = [MetadataRecord(one, record_version(one, self.ours.metadata_version)) for one in records]
        self._kafka.replay(versions)
        self.ours.replay(*records)

    def advance(self, milliseconds: int) -> None:
        """Let time go on."""
        self.ours.monotonic_ms += milliseconds
        self._kafka.advance(self.ours.monotonic_ms)

    def elect(self, task: str) -> None:
        """Run one of the periodic elections."""
        theirs = self._kafka.run(task)
        before = self.ours.image.topics
        records = ELECTIONS[task](self.ours.view, 1_000)
        self.ours.replay(*records)
        self._compare(task, before, records, theirs)

    def fence_stale(self) -> None:
        """Fence everybody that was not heard from in time, in the order that Kafka takes."""
        while (theirs := self._kafka.run("fence")).is_unfinished:
            fenced = [
                Incarnation(one.record.broker_id, one.record.broker_epoch)
                for one in theirs.records
                if isinstance(one.record, BrokerRegistrationChangeRecord)
            ]
            for broker in fenced:
                assert not self.ours.sessions.has_session(broker, self.ours.monotonic_ms)
                self.ours.sessions.end(broker)
                before = self.ours.image.topics
                records = self.ours.records = fence_incarnation(self.ours.view, broker)
                theirs = self._without_repetition(theirs)
                self.ours.replay(*records)
                self._compare(f"{broker} is stale", before, records, theirs)
        stale = self.ours.sessions.find_stale(self.ours.monotonic_ms)
        assert stale is None, f"Kafka has nobody stale, we have {stale}"

    def _without_repetition(self, theirs: Outcome) -> Outcome:
        """Leave out that a broker is fenced if it is: Kafka fences it again, and may elect leaders then."""
        last = theirs.records[-1].record if theirs.records else None
        if not isinstance(last, BrokerRegistrationChangeRecord) or last.fenced != FENCE:
            return theirs
        if not self.ours.image.brokers[last.broker_id].fenced or self.ours.records:
            return theirs
        self.ours.replay(*(one.record for one in theirs.records))
        return theirs._replace(records=[])

    def _compare(self, what: Any, before: Topics, ours: Sequence[Any], theirs: Outcome) -> None:
        version = self.ours.metadata_version
        mine = [MetadataRecord(_uniform(before, one), record_version(one, version)) for one in ours]
        expected = [one._replace(record=_uniform(before, one.record)) for one in theirs.records]
        assert _sorted(mine) == _sorted(expected), f"{what}\nin {before.by_id}"
        assert self.ours.view.next_offset == theirs.next_offset
        for record, _ in theirs.records:
            if isinstance(record, PartitionChangeRecord):
                self._forget_strangers(before, record)

    def _forget_strangers(self, before: Topics, change: PartitionChangeRecord) -> None:
        """Have Kafka forget eligible leaders that are no replicas any more. We never keep them."""
        eligible = _eligible_after(before, change)
        replicas = self.ours.image.topics.by_id[change.topic_id].partitions[change.partition_id].replicas
        if not set(eligible) <= set(replicas):
            kept = tuple(one for one in eligible if one in replicas)
            self.replay(
                PartitionChangeRecord(
                    partition_id=change.partition_id, topic_id=change.topic_id, eligible_leader_replicas=kept
                )
            )


def _sorted(records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """Sort what stands together about partitions: Kafka has them in no order."""
    result: list[MetadataRecord] = []
    for is_change, group in groupby(records, lambda one: isinstance(one.record, PartitionChangeRecord)):
        some = list(group)
        result += sorted(some, key=lambda one: _key(one.record)) if is_change else some
    return result


def _key(record: PartitionChangeRecord) -> tuple[Uuid, int]:
    return record.topic_id, record.partition_id


def _uniform(before: Topics, record: Any) -> Any:
    """Sort lists that Kafka has in no order, and leave out eligible leaders that are no replicas any more."""
    if not isinstance(record, PartitionChangeRecord):
        return record
    partition = before.by_id[record.topic_id].partitions[record.partition_id]
    replicas = partition.replicas if record.replicas is None else record.replicas
    eligible = sorted(one for one in _eligible_after(before, record) if one in replicas)
    return replace(record, eligible_leader_replicas=tuple(eligible))


def _eligible_after(before: Topics, record: PartitionChangeRecord) -> tuple[int, ...]:
    known = before.by_id[record.topic_id].partitions[record.partition_id].eligible_leader_replicas
    changed = record.eligible_leader_replicas
    return (known or ()) if changed is None else changed


def without_messages(value: Any) -> Any:
    """Return an answer as something to compare: its texts are ours, and some lists are in no order."""
    if not isinstance(value, tuple):
        return value
    if hasattr(type(value), "__wire_fields__"):
        names = [name for name in fields_of(type(value)) if name not in ("error_message", "configs")]
        return {name: without_messages(getattr(value, name)) for name in names}
    shown = [without_messages(one) for one in value]
    return sorted(shown, key=repr) if shown and isinstance(shown[0], dict) else shown
