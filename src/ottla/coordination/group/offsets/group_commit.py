"""OffsetCommit and TxnOffsetCommit for a group that may not exist yet."""

from functools import partial
from typing import Final

from ottla.coordination.group.classic.group import ClassicGroup
from ottla.coordination.group.environment import Client
from ottla.coordination.group.offsets.commit import (
    decide_commit,
    decide_transactional_commit,
    refused_commit,
    refused_transactional_commit,
)
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.decision import Decision
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_FIRST_COMMIT_VERSION_WITH_EPOCHS: Final = 9


def decide_group_commit(
    shard: GroupShard, ask: OffsetCommitRequest, client: Client, now_ms: int
) -> Decision[OffsetCommitResponse]:
    """Decide a commit. A group that does not exist is created for a simple consumer, and for nobody else."""
    group = shard.groups.get(ask.group_id)
    if group is None:
        if ask.generation_id_or_member_epoch >= 0:
            code = (
                ErrorCode.GROUP_ID_NOT_FOUND
                if client.version >= _FIRST_COMMIT_VERSION_WITH_EPOCHS
                else ErrorCode.ILLEGAL_GENERATION
            )
            return Decision(reply=refused_commit(ask, code))
        # A simple consumer's: the group comes into being when the record is replayed.
        group = ClassicGroup(ask.group_id)
    keep_alive = partial(shard.keep_alive, group, ask.member_id)
    return decide_commit(group, ask, client.version, shard.env, now_ms, keep_alive)


def decide_group_commit_in_transaction(
    shard: GroupShard, ask: TxnOffsetCommitRequest, client: Client, now_ms: int
) -> Decision[TxnOffsetCommitResponse]:
    """Decide a commit in a transaction. A group may be created by it, too."""
    group = shard.groups.get(ask.group_id)
    if group is None:
        if ask.generation_id >= 0:
            return Decision(reply=refused_transactional_commit(ask, ErrorCode.ILLEGAL_GENERATION))
        group = ClassicGroup(ask.group_id)
    return decide_transactional_commit(group, ask, client.version, shard.env, now_ms)
