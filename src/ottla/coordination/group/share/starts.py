"""Where share groups start, over the shards of a node: the records first, then the share coordinators.

What is decided is in `offsets.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.coordination.group.refusal import Refused
from ottla.coordination.group.share.offsets import (
    Alteration,
    Deletion,
    decide_alter,
    decide_delete,
    decide_deleted,
)
from ottla.coordination.group.share.persister import Errors, StatePersister
from ottla.coordination.group.state import GroupShard
from ottla.coordination.runtime.decision import Answer, Decision
from ottla.coordination.runtime.shard import Shard
from ottla.coordination.runtime.shards import Shards
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")


class ShareStarts:
    """The offsets from which share groups go on, as administrators see and change them."""

    def __init__(self, shards: Shards[GroupShard], share_state: StatePersister) -> None:
        self._shards = shards
        self._share_state = share_state

    def alter(
        self,
        group_id: str,
        starts: Mapping[str, Mapping[int, int]],
        answer: Answer[Errors],
        refuse: Callable[[Refused], None],
    ) -> None:
        """Set the offsets from which an empty share group goes on. Topics and partitions must exist."""

        def initialized(partitions: Partitions, errors: Errors) -> None:
            shard = self._shards.find(group_id)
            if not isinstance(shard, Shard) or any(code is not ErrorCode.NONE for code in errors.values()):
                answer(errors)
                return
            shard.state.shares.initialized(group_id, partitions, lambda: answer(errors))

        def go_on(alteration: Alteration) -> None:
            partitions = {topic: frozenset(offsets) for topic, offsets in alteration.starts.items()}
            if not partitions:
                answer({})
                return
            self._share_state.initialize(
                group_id, alteration.group_epoch, alteration.starts, partial(initialized, partitions)
            )

        self._write_or_refuse(
            group_id,
            lambda shard: decide_alter(group_id, shard.groups.get(group_id), starts, shard.env.topics),
            go_on,
            refuse,
        )

    def delete(
        self,
        group_id: str,
        names: Sequence[str],
        answer: Callable[[Deletion, Errors], None],
        refuse: Callable[[Refused], None],
    ) -> None:
        """Have an empty share group forget where it is in topics."""

        def deleted(deletion: Deletion, errors: Errors) -> None:
            failed = {topic for (topic, _), code in errors.items() if code is not ErrorCode.NONE}
            gone = [topic for topic in deletion.partitions if topic not in failed]
            self._shards.write(
                group_id,
                lambda shard: decide_deleted(group_id, shard.groups.get(group_id), gone, shard.env.topics),
                lambda _: answer(deletion, errors),
                lambda code: refuse(Refused(code)),
            )

        self._write_or_refuse(
            group_id,
            lambda shard: decide_delete(group_id, shard.groups.get(group_id), names, shard.env.topics),
            lambda deletion: self._share_state.delete(
                group_id, deletion.partitions, partial(deleted, deletion)
            ),
            refuse,
        )

    def partitions(
        self, group_id: str, answer: Answer[Partitions], refuse: Callable[[Refused], None]
    ) -> None:
        """Answer which partitions of a share group have a state."""

        def query(shard: GroupShard) -> Partitions:
            group = shard.shares.find(group_id)
            if group is None:
                return {}
            return {topic: numbers for topic, (_, numbers) in group.state_topics.initialized.items()}

        self._shards.read(group_id, query, answer, lambda code: refuse(Refused(code)))

    def _write_or_refuse(
        self,
        group_id: str,
        decide: Callable[[GroupShard], Decision[R]],
        answer: Answer[R],
        refuse: Callable[[Refused], None],
    ) -> None:
        """Write what is decided, unless the decision is a refusal."""
        shard = self._shards.find(group_id)
        if not isinstance(shard, Shard):
            refuse(Refused(shard))
            return
        try:
            decision = decide(shard.state)
        except Refused as refused:
            refuse(refused)
            return
        shard.carry_out(decision, answer, lambda code: refuse(Refused(code)))
