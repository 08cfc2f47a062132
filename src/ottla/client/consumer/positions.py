"""Where to read on: committed offsets, auto.offset.reset, and whether a new leader still has what was read.

A reader that was at offset N of leader epoch E asks a new leader where epoch E ends in its log. An end below
N means that the log was cut (by an unclean election): what was read is not there any more (KIP-320). With a
reset policy reading goes on where the logs part; with `none` the user gets an error.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from ottla.client import surroundings
from ottla.client.cluster import Cluster
from ottla.client.consumer.assignment import Assignment, PartitionState, Position, Status
from ottla.client.consumer.offsets import GroupOffsets
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import BrokerError, ClientError, UnsupportedByBroker
from ottla.client.group import GroupMetadata
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_logger = logging.getLogger(__name__)
_PLACES: Final = {"earliest": EARLIEST, "latest": LATEST}
_CONSUMER: Final = -1


class NoOffset(ClientError):
    """No offset is committed, and auto.offset.reset is none."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        super().__init__(
            f"no offset is committed for {', '.join(map(str, self.partitions))}, "
            "and auto.offset.reset is none: call seek, or set it to earliest or latest"
        )


class LogTruncated(ClientError):
    """What was read is not in the log any more: another leader never had it."""

    def __init__(self, where: TopicPartition, position: int, end_offset: int) -> None:
        super().__init__(
            f"{where} was read up to {position}, but its log now ends or differs at {end_offset}, so the "
            "records after that were lost: seek to continue"
        )
        self.where = where
        self.end_offset = end_offset


class Positions:
    """Finds out where to read on."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        offsets: GroupOffsets | None,
        who: Callable[[], GroupMetadata | None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._offsets = offsets
        self._who = who

    def needs_work(self, assignment: Assignment, now_s: float) -> bool:
        """Say whether some partition cannot be fetched before something is asked."""
        return any(state.status is not Status.READY and state.wait_until_s <= now_s for state in assignment)

    async def settle(self, assignment: Assignment, now_s: float) -> None:
        """Ask what has to be asked. Raises what the user has to know."""
        await self._use_committed(_in_status(assignment, Status.NEEDS_COMMITTED, now_s))
        await self._reset(_in_status(assignment, Status.NEEDS_RESET, now_s))
        await self._check(_in_status(assignment, Status.NEEDS_CHECK, now_s))

    async def _use_committed(self, states: list[PartitionState]) -> None:
        if not states:
            return
        assert self._offsets is not None, "only a group has committed offsets"
        found = await self._offsets.fetch([state.where for state in states], self._who)
        for state in states:
            # A seek in the meantime wins.
            if state.status is not Status.NEEDS_COMMITTED:
                continue
            committed = found.get(state.where)
            if committed is None:
                state.need_reset()
            else:
                state.seek(Position(committed.offset, committed.leader_epoch))

    async def _with_leader(self, states: list[PartitionState]) -> list[PartitionState]:
        """Return those that can be asked about now. One without a leader keeps no other waiting."""
        leaderless = [state for state in states if self._cluster.topology.leader_of(state.where) is None]
        if leaderless:
            await self._cluster.refresh({state.where.topic for state in leaderless})
        return [state for state in states if self._cluster.topology.leader_of(state.where) is not None]

    async def _reset(self, states: list[PartitionState]) -> None:
        policy = self._settings.reset_policy
        lacking = [state for state in states if state.reset_to is None and policy == "none"]
        if lacking:
            raise NoOffset(state.where for state in lacking)
        states = await self._with_leader(states)
        times = {}
        for state in states:
            to = policy if state.reset_to is None else state.reset_to
            times[state.where] = _PLACES[to] if isinstance(to, str) else surroundings.now_ms() - to
        found = await list_offsets(self._cluster, times, self._settings.isolation)
        late = [state.where for state in states if state.where not in found]
        # Nothing is so young: then only what comes from now on is.
        found |= await list_offsets(self._cluster, dict.fromkeys(late, LATEST), self._settings.isolation)
        for state in states:
            if state.status is Status.NEEDS_RESET and state.where in found:
                state.seek(Position(found[state.where].offset, found[state.where].leader_epoch))

    async def _check(self, states: list[PartitionState]) -> None:
        by_leader: dict[int, list[PartitionState]] = {}
        for state in await self._with_leader(states):
            by_leader.setdefault((await self._cluster.leader(state.where)).leader, []).append(state)
        for node_id, some in by_leader.items():
            await self._check_with(node_id, some)

    async def _check_with(self, node_id: int, states: list[PartitionState]) -> None:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        asked: dict[TopicPartition, tuple[PartitionState, int, int]] = {}
        for state in states:
            view = self._cluster.topology.leader_of(state.where)
            current = -1 if view is None else view.leader_epoch
            asked[state.where] = (state, state.fetch_offset, current)
            part = OffsetForLeaderPartition(
                partition=state.where.partition,
                current_leader_epoch=current,
                leader_epoch=state.fetch_epoch,
            )
            topics.setdefault(state.where.topic, []).append(part)
        request = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=tuple(
                OffsetForLeaderTopic(topic=name, partitions=tuple(parts)) for name, parts in topics.items()
            ),
        )
        try:
            answer = await self._cluster.ask_node(node_id, request)
        except UnsupportedByBroker:
            for state, _, current in asked.values():
                state.checked(current)
            return
        except ClientError:
            await self._cluster.refresh(topics)
            return
        for topic in answer.topics:
            for result in topic.partitions:
                known = asked.get(TopicPartition(topic.topic, result.partition))
                if known is not None:
                    await self._checked(*known, result)

    async def _checked(
        self, state: PartitionState, offset: int, current_epoch: int, result: EpochEndOffset
    ) -> None:
        if state.status is not Status.NEEDS_CHECK or state.fetch_offset != offset:
            return
        if result.error_code is not ErrorCode.NONE:
            if not result.error_code.retriable:
                raise BrokerError(result.error_code, f"the position in {state.where} could not be checked")
            await self._cluster.refresh([state.where.topic])
            return
        if result.end_offset < 0 or result.leader_epoch < 0:
            # The leader has nothing of so old an epoch: where to go on, only a reset can say.
            cut_at: int | None = None
        elif result.end_offset >= offset:
            state.checked(current_epoch)
            return
        else:
            cut_at = result.end_offset
        self._truncated(state, offset, cut_at, result.leader_epoch)

    def _truncated(self, state: PartitionState, offset: int, cut_at: int | None, epoch: int) -> None:
        if self._settings.reset_policy == "none":
            raise LogTruncated(state.where, offset, -1 if cut_at is None else cut_at)
        _logger.warning(
            "%s was truncated at %s, before our position %d: going back", state.where, cut_at, offset
        )
        if cut_at is None:
            state.need_reset()
        else:
            state.seek(Position(min(cut_at, state.position.offset), epoch))


def _in_status(assignment: Assignment, status: Status, now_s: float) -> list[PartitionState]:
    return [state for state in assignment if state.status is status and state.wait_until_s <= now_s]
