"""Where a group would go on after a reset: a plan, which changes nothing."""

from collections.abc import Collection, Mapping

from ottla.client.admin.offsets import Offsets, OffsetSpec
from ottla.client.admin.topics import Topics
from ottla.client.errors import BrokerError
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode


class ResetPlans:
    """Plans resets, for groups of every kind."""

    def __init__(self, offsets: Offsets, topics: Topics) -> None:
        self._offsets = offsets
        self._topics = topics

    async def plan(
        self,
        group_id: str,
        current: Mapping[TopicPartition, int],
        *,
        topics: Collection[str] | None = None,
        partitions: Collection[TopicPartition] | None = None,
        to: int | OffsetSpec | None = None,
        to_timestamp_ms: int | None = None,
        shift_by: int | None = None,
    ) -> dict[TopicPartition, int]:
        """Say where a group would go on that is at `current` now.

        Exactly one of: `to` an offset or an `OffsetSpec`; `to_timestamp_ms`, the first record at or after a
        time, or the end where there is none; `shift_by` from the current offset. Offsets that a partition
        does not have become the nearest that it has. Without topics and partitions: all that are current.
        """
        if sum(choice is not None for choice in (to, to_timestamp_ms, shift_by)) != 1:
            raise ValueError("give exactly one of `to`, `to_timestamp_ms` and `shift_by`")
        chosen = await self._choose(current, topics, partitions)
        starts = (await self._offsets.earliest(chosen)).check()
        ends = (await self._offsets.latest(chosen)).check()
        times = {}
        if to_timestamp_ms is not None:
            times = (await self._offsets.list(dict.fromkeys(chosen, to_timestamp_ms))).check()
        plan = {}
        for where in chosen:
            start, end = starts[where].offset, ends[where].offset
            if to_timestamp_ms is not None:
                found = times[where].offset
                wanted = found if found >= 0 else end
            elif shift_by is not None:
                if where not in current:
                    raise BrokerError(
                        ErrorCode.OFFSET_OUT_OF_RANGE,
                        f"group {group_id!r} has no committed offset for {where}",
                    )
                wanted = current[where] + shift_by
            elif to is OffsetSpec.EARLIEST:
                wanted = start
            elif to is OffsetSpec.LATEST:
                wanted = end
            else:
                assert to is not None, "one of the three was given"
                wanted = to
            plan[where] = min(max(wanted, start), end)
        return plan

    async def _choose(
        self,
        current: Collection[TopicPartition],
        topics: Collection[str] | None,
        partitions: Collection[TopicPartition] | None,
    ) -> tuple[TopicPartition, ...]:
        if topics is None and partitions is None:
            return tuple(sorted(current))
        chosen = set(partitions or ())
        for description in (await self._topics.describe_many(topics or ())).check().values():
            chosen.update(description.topic_partitions)
        return tuple(sorted(chosen))
