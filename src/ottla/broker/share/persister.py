"""The way to the share coordinators, which are on any broker: what the leaders and the group coordinator ask.

A request for a state of this node is a call. For any other it is sent to the broker that leads the state's
partition of `__share_group_state`. The topic is created when it is first needed. While a coordinator moves or
loads, the request is repeated for some time, then it is answered with the error.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.broker.cluster.auto_topics import creatable_topic
from ottla.broker.share.share_node import ShareNode
from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.share.persister import (
    Errors,
    StartOffsets,
    StateSummary,
    Summaries,
)
from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.share.coordinator import Outcome, ShareCoordinator, WrittenState
from ottla.coordination.share.state import UNKNOWN, PartitionState, ShareKey
from ottla.coordination.share.state_batches import StateBatch
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Answered, Unanswered
from ottla.wire.coordinator_records.framing import SHARE_STATE_RECORDS
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import delete_share_group_state as delete_state
from ottla.wire.messages import initialize_share_group_state as initialize_state
from ottla.wire.messages import read_share_group_state as read_state
from ottla.wire.messages import read_share_group_state_summary as read_summary
from ottla.wire.messages import write_share_group_state as write_state
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.world.scheduler import Scheduler

Done: TypeAlias = Callable[[Outcome], None]

TOPIC: Final = SHARE_STATE_RECORDS.topic
TRIES_MAX: Final = 12
_BACKOFF_MS: Final = 50
_BACKOFF_MS_MAX: Final = 1_000
_CREATE_TIMEOUT_MS: Final = 30_000

_TRANSIENT: Final = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
    )
)


class _Ask(NamedTuple):
    """One request about one state: how to ask the coordinator of this node, and how to ask another."""

    key: ShareKey
    call: Callable[[ShareCoordinator, Done], None]
    request: Callable[[], Any]
    done: Done
    tries: int = 1


class SharePersister:
    """The share coordinators of the cluster. Implements the group coordinator's `StatePersister`."""

    def __init__(self, broker: ShareNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._peers: dict[int, Link] = {}
        self._is_creating = False
        self._is_closed = False

    # What the group coordinator asks

    def initialize(
        self, group_id: str, state_epoch: int, starts: StartOffsets, done: Callable[[Errors], None]
    ) -> None:
        """Give partitions a state, which begins at these offsets."""
        keys = {
            ShareKey(group_id, topic_id, number): start
            for topic_id, offsets in starts.items()
            for number, start in offsets.items()
        }
        gathered = _Gathered(set(keys), lambda found: done(_errors(found)))
        for key, start in keys.items():
            self._initialize_one(key, state_epoch, start, gathered)

    def _initialize_one(self, key: ShareKey, state_epoch: int, start: int, gathered: "_Gathered") -> None:
        def call(coordinator: ShareCoordinator, answer: Done) -> None:
            coordinator.initialize(key, state_epoch, start, self._broker.clock.now_ms(), answer)

        def request() -> Any:
            one = initialize_state.PartitionData(
                partition=key.partition, state_epoch=state_epoch, start_offset=start
            )
            topic = initialize_state.InitializeStateData(topic_id=key.topic_id, partitions=(one,))
            return initialize_state.InitializeShareGroupStateRequest(group_id=key.group_id, topics=(topic,))

        self._ask(_Ask(key, call, request, partial(gathered.add, key)))

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        """Delete the state of partitions."""
        keys = _keys(group_id, partitions)
        gathered = _Gathered(keys, lambda found: done(_errors(found)))
        for key in sorted(keys):
            self._ask(
                _Ask(
                    key,
                    lambda coordinator, answer, key=key: coordinator.delete(key, answer),  # type: ignore[misc]
                    partial(_delete_request, key),
                    partial(gathered.add, key),
                )
            )

    def summarize(self, group_id: str, partitions: Partitions, done: Callable[[Summaries], None]) -> None:
        """Read where partitions begin, and how much of them is done."""
        keys = _keys(group_id, partitions)
        gathered = _Gathered(keys, lambda found: done(_summaries(found)))
        for key in sorted(keys):
            self._ask(
                _Ask(
                    key,
                    lambda coordinator, answer, key=key: coordinator.summarize(key, answer),  # type: ignore[misc]
                    partial(_summary_request, key),
                    partial(gathered.add, key),
                )
            )

    # What leaders ask

    def read(self, key: ShareKey, leader_epoch: int, done: Done) -> None:
        """Read the state of a partition that this node leads."""

        def call(coordinator: ShareCoordinator, answer: Done) -> None:
            coordinator.read(key, leader_epoch, self._broker.clock.now_ms(), answer)

        def request() -> Any:
            one = read_state.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
            topic = read_state.ReadStateData(topic_id=key.topic_id, partitions=(one,))
            return read_state.ReadShareGroupStateRequest(group_id=key.group_id, topics=(topic,))

        self._ask(_Ask(key, call, request, done))

    def write(self, key: ShareKey, written: WrittenState, done: Done) -> None:
        """Write what became of records of a partition that this node leads."""

        def call(coordinator: ShareCoordinator, answer: Done) -> None:
            coordinator.write(key, written, self._broker.clock.now_ms(), answer)

        self._ask(_Ask(key, call, partial(_write_request, key, written), done))

    def close(self) -> None:
        """Stop. Requests that wait are answered."""
        self._is_closed = True
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.close()

    # Asking

    def _ask(self, ask: _Ask) -> None:
        broker = self._broker
        topic = broker.image.topics.find(TOPIC)
        if topic is None:
            self._create_topic()
            self._answered(ask, _unavailable(f"{TOPIC} is being created"))
            return
        leader = topic.partitions[partition_of_key(str(ask.key), len(topic.partitions))].leader
        if leader == broker.node_id:
            ask.call(broker.shares.coordinator, partial(self._answered, ask))
        elif leader < 0:
            self._answered(ask, _unavailable(f"the share coordinator's partition of {TOPIC} has no leader"))
        else:
            self.ask(leader, ask.request(), lambda response: self._answered(ask, _outcome(response)))

    def ask(self, broker_id: int, request: Any, answered: Answered) -> None:
        """Send a request to another broker."""
        peer = self._peers.get(broker_id)
        if peer is None:
            name = f"broker-{self._broker.node_id}-share-persister"
            peer = self._peers[broker_id] = self._broker.replication.peer(broker_id, name)
        peer.ask(request, answered)

    def _answered(self, ask: _Ask, outcome: Outcome) -> None:
        if outcome.error_code not in _TRANSIENT or ask.tries >= TRIES_MAX or self._is_closed:
            ask.done(outcome)
            return
        delay_ms = min(_BACKOFF_MS << (ask.tries - 1), _BACKOFF_MS_MAX)
        self._scheduler.call_later(delay_ms, self._ask, ask._replace(tries=ask.tries + 1))

    def _create_topic(self) -> None:
        if self._is_creating or self._is_closed:
            return
        self._is_creating = True
        broker = self._broker
        brokers = sum(not one.fenced for one in broker.image.brokers.values())
        topic = creatable_topic(TOPIC, broker.config, brokers)

        def done(_answer: object) -> None:
            self._is_creating = False

        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_CREATE_TIMEOUT_MS)
        broker.controller.ask(request, None).when_done(done, done)


class _Gathered:
    """The outcomes of several requests, given on when all are there."""

    def __init__(self, keys: set[ShareKey], done: Callable[[dict[ShareKey, Outcome]], None]) -> None:
        self._missing = keys
        self._done = done
        self._found: dict[ShareKey, Outcome] = {}
        if not keys:
            done({})

    def add(self, key: ShareKey, outcome: Outcome) -> None:
        self._missing.discard(key)
        self._found[key] = outcome
        if not self._missing:
            self._done(self._found)


def _unavailable(why: str) -> Outcome:
    return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)


def _keys(group_id: str, partitions: Partitions) -> set[ShareKey]:
    return {
        ShareKey(group_id, topic_id, number) for topic_id, numbers in partitions.items() for number in numbers
    }


def _errors(found: dict[ShareKey, Outcome]) -> Errors:
    return {(key.topic_id, key.partition): outcome.error_code for key, outcome in found.items()}


def _summaries(found: dict[ShareKey, Outcome]) -> Summaries:
    summaries = {}
    for key, (error_code, _, state) in found.items():
        summary = StateSummary(error_code)
        if state is not None:
            summary = StateSummary(
                error_code, state.start_offset, state.leader_epoch, state.delivery_complete_count
            )
        summaries[key.topic_id, key.partition] = summary
    return summaries


def _delete_request(key: ShareKey) -> delete_state.DeleteShareGroupStateRequest:
    one = delete_state.PartitionData(partition=key.partition)
    topic = delete_state.DeleteStateData(topic_id=key.topic_id, partitions=(one,))
    return delete_state.DeleteShareGroupStateRequest(group_id=key.group_id, topics=(topic,))


def _summary_request(key: ShareKey) -> read_summary.ReadShareGroupStateSummaryRequest:
    one = read_summary.PartitionData(partition=key.partition, leader_epoch=UNKNOWN)
    topic = read_summary.ReadStateSummaryData(topic_id=key.topic_id, partitions=(one,))
    return read_summary.ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=(topic,))


def _write_request(key: ShareKey, written: WrittenState) -> write_state.WriteShareGroupStateRequest:
    update = written.update
    one = write_state.PartitionData(
        partition=key.partition,
        state_epoch=written.state_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=tuple(
            write_state.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in update.batches
        ),
    )
    topic = write_state.WriteStateData(topic_id=key.topic_id, partitions=(one,))
    return write_state.WriteShareGroupStateRequest(group_id=key.group_id, topics=(topic,))


def _outcome(response: Any) -> Outcome:
    """Return what another broker answered about the one state that it was asked for."""
    if isinstance(response, Unanswered):
        return Outcome(ErrorCode.NETWORK_EXCEPTION, str(response))
    results = [one for topic in response.results for one in topic.partitions]
    if len(results) != 1:
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, "the share coordinator did not answer what was asked")
    (one,) = results
    if one.error_code is not ErrorCode.NONE:
        return Outcome(one.error_code, one.error_message)
    if isinstance(one, read_state.PartitionResult):
        batches = tuple(
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in one.state_batches
        )
        state = PartitionState(
            UNKNOWN, one.state_epoch, UNKNOWN, one.start_offset, UNKNOWN, batches, UNKNOWN, UNKNOWN
        )
        return Outcome(ErrorCode.NONE, state=state)
    if isinstance(one, read_summary.PartitionResult):
        state = PartitionState(
            UNKNOWN,
            one.state_epoch,
            one.leader_epoch,
            one.start_offset,
            one.delivery_complete_count,
            (),
            UNKNOWN,
            UNKNOWN,
        )
        return Outcome(ErrorCode.NONE, state=state)
    return Outcome(ErrorCode.NONE)
