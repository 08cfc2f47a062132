"""The group coordinator of a node: one method for each API, over the shards that the node leads.

Every method takes the request, who sent it, the time, and what to call with the answer: at once when nothing
has to be waited for, later when the answer must be on disk first or others have to come. The broker has
looked at permissions and topics before; here it is about groups alone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ottla.coordination.group.admin import (
    delete_group,
    describe_classic_group,
    list_groups,
    refused_description,
)
from ottla.coordination.group.classic.group import refused_join
from ottla.coordination.group.classic.requests import decide_heartbeat, decide_join, decide_leave, decide_sync
from ottla.coordination.group.consumer.describe import (
    describe_consumer_group,
    refused_consumer_description,
)
from ottla.coordination.group.consumer.heartbeat import refused_heartbeat
from ottla.coordination.group.consumer.validation import check_heartbeat
from ottla.coordination.group.environment import Client
from ottla.coordination.group.host import GroupHost, GroupShardEnvironment
from ottla.coordination.group.offsets.commit import refused_commit, refused_transactional_commit
from ottla.coordination.group.offsets.delete import (
    decide_delete_offsets,
    decide_topics_deleted,
    refused_delete,
)
from ottla.coordination.group.offsets.fetch import fetch_offsets, refused_fetch
from ottla.coordination.group.offsets.group_commit import (
    decide_group_commit,
    decide_group_commit_in_transaction,
)
from ottla.coordination.group.offsets.repeated import RepeatedCommit
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.settings import (
    GroupSettings,
)
from ottla.coordination.group.share.describe import describe_share_group, refused_share_description
from ottla.coordination.group.share.heartbeat import (
    Heartbeat,
    check_share_heartbeat,
)
from ottla.coordination.group.share.heartbeat import refused_heartbeat as refused_share_heartbeat
from ottla.coordination.group.share.persister import Errors
from ottla.coordination.group.share.starts import ShareStarts
from ottla.coordination.group.state import GroupShard
from ottla.coordination.group.streams.answers import HeartbeatOutcome
from ottla.coordination.group.streams.answers import refused_heartbeat as refused_streams_heartbeat
from ottla.coordination.group.streams.describe import describe_streams_group, refused_streams_description
from ottla.coordination.group.streams.validation import check_heartbeat as check_streams_heartbeat
from ottla.coordination.runtime.decision import Answer, Decision, ProducerIdentity, Refuse, ignore
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.runtime.shards import Shards
from ottla.coordination.runtime.timers import fire_all
from ottla.model.uuid import Uuid
from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.delete_groups import DeletableGroupResult
from ottla.wire.messages.describe_groups import DescribedGroup
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListedGroup
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.wire.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from ottla.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from ottla.wire.messages.streams_group_describe import DescribedGroup as DescribedStreamsGroup
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

R = TypeVar("R")


class GroupCoordinator:
    """The groups whose partitions of `__consumer_offsets` this node leads."""

    def __init__(self, settings: GroupSettings, host: GroupHost) -> None:
        self.settings = settings
        self.host = host
        self.shards: Shards[GroupShard] = Shards(lambda partition: GroupShard(self.environment_of(partition)))
        self.share_starts = ShareStarts(self.shards, host.share_state)

    def environment_of(self, partition: int) -> GroupShardEnvironment:
        """Return what the shard of a partition may ask for."""
        return GroupShardEnvironment(self.settings, self.host, self.shards, partition)

    # Time

    def fire_timers(self) -> int | None:
        """Do what is due. Return the monotonic time of the next deadline."""
        return fire_all(shard.state.env.timers for shard in self.shards)

    # Members of classic groups

    def join_group(
        self, ask: JoinGroupRequest, client: Client, now_ms: int, answer: Answer[JoinGroupResponse]
    ) -> None:
        """Let a member join; the answer comes when everybody has."""
        refusal = self._check_join(ask)
        if refusal is not ErrorCode.NONE:
            answer(refused_join(ask.member_id, refusal))
            return
        if client.version == 0:
            # It has one timeout for both.
            ask = replace(ask, rebalance_timeout_ms=ask.session_timeout_ms)
        self._write(
            ask.group_id,
            lambda shard: decide_join(shard, ask, client, now_ms, answer),
            answer,
            lambda code: refused_join("", code),
        )

    def sync_group(
        self, ask: SyncGroupRequest, client: Client, now_ms: int, answer: Answer[SyncGroupResponse]
    ) -> None:
        """Give a member its assignment; the answer comes when the leader has brought it."""
        if not ask.group_id:
            answer(_refused_sync(ErrorCode.INVALID_GROUP_ID))
            return
        self._write(
            ask.group_id,
            lambda shard: decide_sync(shard, ask, client, now_ms, answer),
            answer,
            _refused_sync,
        )

    def heartbeat(
        self, ask: HeartbeatRequest, _client: Client, now_ms: int, answer: Answer[HeartbeatResponse]
    ) -> None:
        """Take note that a member lives."""
        if not ask.group_id:
            answer(HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        self._write(
            ask.group_id, lambda shard: decide_heartbeat(shard, ask, now_ms), answer, _refused_heartbeat
        )

    def leave_group(
        self, ask: LeaveGroupRequest, _client: Client, now_ms: int, answer: Answer[LeaveGroupResponse]
    ) -> None:
        """Let members go."""
        if not ask.group_id:
            answer(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        self._write(
            ask.group_id,
            lambda shard: decide_leave(shard, ask, now_ms, answer),
            answer,
            lambda code: LeaveGroupResponse(error_code=code),
        )

    def _check_join(self, ask: JoinGroupRequest) -> ErrorCode:
        if not ask.group_id:
            return ErrorCode.INVALID_GROUP_ID
        settings = self.settings
        if not settings.min_session_timeout_ms <= ask.session_timeout_ms <= settings.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    # Members of consumer groups

    def consumer_group_heartbeat(
        self,
        ask: ConsumerGroupHeartbeatRequest,
        client: Client,
        now_ms: int,
        answer: Answer[ConsumerGroupHeartbeatResponse],
    ) -> None:
        """Let a member of a consumer group join, stay or leave."""
        try:
            check_heartbeat(ask, client.version, self.settings.consumer_assignors)
        except Refused as refused:
            answer(refused_heartbeat(refused.error_code, refused.message))
            return
        self._write(
            ask.group_id,
            lambda shard: shard.consumers.heartbeats.decide(ask, client, now_ms),
            answer,
            refused_heartbeat,
        )

    # Members of streams groups

    def streams_group_heartbeat(
        self,
        ask: StreamsGroupHeartbeatRequest,
        client: Client,
        now_ms: int,
        answer: Answer[HeartbeatOutcome],
    ) -> None:
        """Let a member of a streams group join, stay or leave. The outcome names topics to be created."""
        try:
            check_streams_heartbeat(ask)
        except Refused as refused:
            answer(refused_streams_heartbeat(refused.error_code, refused.message))
            return
        self._write(
            ask.group_id,
            lambda shard: shard.streams.heartbeats.decide(ask, client, now_ms),
            answer,
            refused_streams_heartbeat,
        )

    # Members of share groups

    def share_group_heartbeat(
        self,
        ask: ShareGroupHeartbeatRequest,
        client: Client,
        now_ms: int,
        answer: Answer[ShareGroupHeartbeatResponse],
    ) -> None:
        """Let a member of a share group join, stay or leave."""
        try:
            check_share_heartbeat(ask)
        except Refused as refused:
            answer(refused_share_heartbeat(refused.error_code, refused.message))
            return

        def go_on(heartbeat: Heartbeat) -> None:
            answer(heartbeat.response)
            shard = self.shards.find(ask.group_id)
            if heartbeat.uninitialized and isinstance(shard, Shard):
                shard.state.shares.initialize(ask.group_id, heartbeat)

        self.shards.write(
            ask.group_id,
            lambda shard: shard.shares.heartbeats.decide(ask, client, now_ms),
            go_on,
            lambda code: answer(refused_share_heartbeat(code)),
        )

    # Offsets

    def commit_offsets(
        self, ask: OffsetCommitRequest, client: Client, now_ms: int, answer: Answer[OffsetCommitResponse]
    ) -> None:
        """Commit offsets. Topics are given by name and id both."""
        self._write(
            ask.group_id,
            lambda shard: decide_group_commit(shard, ask, client, now_ms),
            answer,
            lambda code: refused_commit(ask, code),
        )

    def commit_offsets_again(
        self,
        repeated: RepeatedCommit,
        offsets: tuple[int, ...],
        encoded: Sequence[bytes],
        now_ms: int,
        answer: Answer[bool],
        refuse: Refuse,
    ) -> bool:
        """Commit other offsets for the same partitions. False if that needs a closer look: nothing is done.

        `encoded` has the bytes of the records. `answer` gets True when they are committed.
        """
        shard = self.shards.find(repeated.group_id)
        if not isinstance(shard, Shard):
            return False
        decision = repeated.decide(shard.state, offsets, now_ms, encoded)
        if decision is None:
            return False
        shard.carry_out(decision, answer, refuse)
        return True

    def commit_offsets_in_transaction(
        self,
        ask: TxnOffsetCommitRequest,
        producer: ProducerIdentity,
        client: Client,
        now_ms: int,
        answer: Answer[TxnOffsetCommitResponse],
    ) -> None:
        """Commit offsets that count when the transaction does. The broker has made sure that it is open."""

        def refuse(code: ErrorCode) -> None:
            answer(refused_transactional_commit(ask, code))

        self.shards.write(
            ask.group_id,
            lambda state: decide_group_commit_in_transaction(state, ask, client, now_ms),
            answer,
            refuse,
            producer,
        )

    def fetch_offsets(
        self, ask: OffsetFetchRequestGroup, require_stable: bool, answer: Answer[OffsetFetchResponseGroup]
    ) -> None:
        """Answer what a group has committed."""
        self._read(
            ask.group_id,
            lambda shard: fetch_offsets(shard.groups.get(ask.group_id), shard.offsets, ask, require_stable),
            answer,
            lambda code: refused_fetch(ask.group_id, code),
        )

    def delete_offsets(
        self, ask: OffsetDeleteRequest, _client: Client, _now_ms: int, answer: Answer[OffsetDeleteResponse]
    ) -> None:
        """Delete offsets that nobody needs."""
        if not ask.group_id:
            answer(refused_delete(ErrorCode.INVALID_GROUP_ID))
            return
        self._write(
            ask.group_id,
            lambda shard: decide_delete_offsets(shard.groups.get(ask.group_id), shard.offsets, ask),
            answer,
            refused_delete,
        )

    def topics_changed(self, names: Iterable[str], has_new: bool) -> None:
        """Tell groups that topics were created, have changed, or are gone."""
        names = list(names)
        for shard in self.shards:
            if shard.refusal is ErrorCode.NONE:
                shard.state.consumers.topics_changed(names, has_new)
                shard.state.streams.topics_changed(names)
                shard.state.shares.topics_changed(names)

    def topics_deleted(self, topics: list[tuple[str, Uuid]]) -> None:
        """Delete what groups have committed for topics that are gone."""
        gone = frozenset(topic_id for _, topic_id in topics)
        for shard in self.shards:
            if shard.refusal is ErrorCode.NONE:
                shard.write(
                    lambda state: decide_topics_deleted(state.offsets, topics),
                    ignore,
                    ignore,
                )
                shard.write(lambda state: state.shares.decide_topics_deleted(gone), ignore, ignore)

    # Administration

    def list_groups(
        self,
        states: tuple[str, ...],
        types: tuple[str, ...],
        answer: Answer[list[ListedGroup] | ErrorCode],
    ) -> None:
        """List the groups of this node; an error if some of them are being loaded."""
        self.shards.read_all(
            # The newest first. The protocol gives groups no order and Kafka's is that of a hash table,
            # but its own tests count on the later one of two being listed before the other.
            lambda state: list_groups(reversed(state.groups.values()), states, types),
            answer,
        )

    def describe_group(self, group_id: str, client: Client, answer: Answer[DescribedGroup]) -> None:
        """Describe a classic group."""
        self._read(
            group_id,
            lambda shard: describe_classic_group(group_id, shard.groups.get(group_id), client.version),
            answer,
            lambda code: refused_description(group_id, code),
        )

    def describe_consumer_group(self, group_id: str, answer: Answer[DescribedConsumerGroup]) -> None:
        """Describe a consumer group."""
        if not group_id:
            answer(refused_consumer_description(group_id, ErrorCode.INVALID_GROUP_ID))
            return
        self._read(
            group_id,
            lambda shard: describe_consumer_group(group_id, shard.groups.get(group_id), shard.env),
            answer,
            lambda code: refused_consumer_description(group_id, code),
        )

    def describe_streams_group(self, group_id: str, answer: Answer[DescribedStreamsGroup]) -> None:
        """Describe a streams group."""
        if not group_id:
            answer(refused_streams_description(group_id, ErrorCode.INVALID_GROUP_ID))
            return
        self._read(
            group_id,
            lambda shard: describe_streams_group(group_id, shard.groups.get(group_id)),
            answer,
            lambda code: refused_streams_description(group_id, code),
        )

    def describe_share_group(self, group_id: str, answer: Answer[DescribedShareGroup]) -> None:
        """Describe a share group."""
        if not group_id:
            answer(refused_share_description(group_id, ErrorCode.INVALID_GROUP_ID))
            return
        self._read(
            group_id,
            lambda shard: describe_share_group(group_id, shard.groups.get(group_id), shard.env.topics),
            answer,
            lambda code: refused_share_description(group_id, code),
        )

    def delete_group(self, group_id: str, answer: Answer[DeletableGroupResult]) -> None:
        """Delete a group and its offsets. Of a share group the states of its partitions go first."""
        shard = self.shards.find(group_id)
        group = shard.state.shares.find(group_id) if isinstance(shard, Shard) else None
        if group is None or group.members:
            self._delete_group_now(group_id, answer)
            return

        def states_deleted(errors: Errors) -> None:
            failed = [code for code in errors.values() if code is not ErrorCode.NONE]
            if failed:
                answer(DeletableGroupResult(group_id=group_id, error_code=failed[0]))
            else:
                self._delete_group_now(group_id, answer)

        self.shards.write(
            group_id,
            lambda state: state.shares.decide_deletion(group),
            lambda partitions: self.host.share_state.delete(group_id, partitions, states_deleted),
            lambda code: answer(DeletableGroupResult(group_id=group_id, error_code=code)),
        )

    def _delete_group_now(self, group_id: str, answer: Answer[DeletableGroupResult]) -> None:
        self._write(
            group_id,
            lambda shard: _decide_delete(shard, group_id),
            answer,
            lambda code: DeletableGroupResult(group_id=group_id, error_code=code),
        )

    # Reaching a shard

    def _write(
        self,
        group_id: str,
        decide: Callable[[GroupShard], Decision[R]],
        answer: Answer[R],
        refused: Callable[[ErrorCode], R],
    ) -> None:
        self.shards.write(group_id, decide, answer, lambda code: answer(refused(code)))

    def _read(
        self,
        group_id: str,
        query: Callable[[GroupShard], R],
        answer: Answer[R],
        refused: Callable[[ErrorCode], R],
    ) -> None:
        self.shards.read(group_id, query, answer, lambda code: answer(refused(code)))


def _decide_delete(shard: GroupShard, group_id: str) -> Decision[DeletableGroupResult]:
    records: list[CoordinatorRecord] = []
    code = ErrorCode.NONE
    try:
        records = delete_group(group_id, shard.groups.get(group_id), shard.offsets)
    except Refused as refused:
        code = refused.error_code
    return Decision(tuple(records), DeletableGroupResult(group_id=group_id, error_code=code))


def _refused_sync(error_code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error_code, assignment=b"")


def _refused_heartbeat(error_code: ErrorCode) -> HeartbeatResponse:
    # While the group is being loaded nobody's session runs: the member need not know.
    if error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error_code = ErrorCode.NONE
    return HeartbeatResponse(error_code=error_code)
