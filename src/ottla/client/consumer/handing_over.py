"""From what was fetched to records in the user's hands, in order, with the position moving along.

Batches are opened one by one, when their turn comes. Where one cannot be read, everything before it is handed
over first; then the error is raised, and raised again, until the user seeks past it.
"""

from ottla.client.consumer.assignment import Assignment, Chunk, PartitionState, Position, Status
from ottla.client.consumer.record import ConsumerRecord, RecordMaker, Undeserializable
from ottla.client.errors import BrokerError, ClientError
from ottla.model.ids import TopicPartition
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode


class HandingOver:
    """Takes records out of the buffers of all partitions, in turn."""

    def __init__(self, assignment: Assignment, maker: RecordMaker) -> None:
        self._assignment = assignment
        self._maker = maker
        self._turn = 0
        self._current: PartitionState | None = None

    def take_one(self) -> ConsumerRecord | None:
        """Return the next record, if there is one at hand."""
        state = self._current
        # The way of nearly all records, kept short: the batch is open, and nothing has changed.
        if state is not None and state.chunks and state.status is Status.READY and not state.is_paused:
            chunk = state.chunks[0]
            if chunk.index < len(chunk.ready):
                record = chunk.ready[chunk.index]
                chunk.index += 1
                state.position = Position(record.offset + 1, record.leader_epoch)
                return record
        records = self.take(1)
        return records[0] if records else None

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Return up to this many records. Each partition gets its turn."""
        states = list(self._assignment.states.values())
        taken: list[ConsumerRecord] = []
        for step in range(len(states)):
            state = states[(self._turn + step) % len(states)]
            if not state.chunks or state.is_paused or state.status is not Status.READY:
                continue
            try:
                taken += self._take_from(state, records_max - len(taken))
            except ClientError:
                if not taken:
                    raise
                break
            if len(taken) >= records_max:
                # A partition that was cut short goes on; one with nothing left lets the next one begin.
                self._turn = (self._turn + step + (not state.chunks)) % len(states)
                self._current = state
                break
        return taken

    def _take_from(self, state: PartitionState, records_max: int) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        while state.chunks and len(taken) < records_max:
            chunk = state.chunks[0]
            if chunk.index >= len(chunk.ready):
                if chunk.failure is not None:
                    if taken:
                        break
                    raise chunk.failure
                if not self._open_next(state, chunk):
                    state.drop_first()
                    self._assignment.changed()
                continue
            part = chunk.ready[chunk.index : chunk.index + records_max - len(taken)]
            chunk.index += len(part)
            taken += part
            state.position = Position(part[-1].offset + 1, part[-1].leader_epoch)
        return taken

    def _open_next(self, state: PartitionState, chunk: Chunk) -> bool:
        """Make the records of the next batch ready. Returns False when there is none."""
        where, position = state.where, state.position.offset
        chunk.index, chunk.ready = 0, []
        try:
            batch = next(chunk.batches, None)
            if batch is None:
                return False
            chunk.ready = self._maker.records_of(where, batch, position)
        except RecordsError as error:
            chunk.failure = damaged(where, position, str(error))
            return True
        except Undeserializable as error:
            chunk.failure = error
            chunk.ready = error.before
        return True


def damaged(where: TopicPartition, offset: int, why: str) -> ClientError:
    """Return the error for bytes that cannot be read."""
    return BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{where} has damaged bytes at or after {offset}", why)
