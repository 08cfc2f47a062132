"""A simulated consumer of a classic group: it joins, syncs, beats, processes, and commits after processing.

It has one request under way at a time, as on a connection, and does after each error what a real client does.
The leader assigns partitions in ranges.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.support.group_requests import (
    commit_request,
    heartbeat_request,
    join_request,
    leave_request,
    subscription,
    sync_request,
)

from ottla.coordination.group.environment import Client
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

if TYPE_CHECKING:
    from tests.simulation.groups.world import Simulation

TOPIC: Final = "orders"
SESSION_MS: Final = 10_000
BEAT_MS: Final = 3_000
BACKOFF_MS: Final = 100
REQUEST_TIMEOUT_MS: Final = 30_000
_TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)


class Consumer:
    """One member, as it knows itself."""

    def __init__(
        self, simulation: "Simulation", name: str, group: str, instance_id: str | None, version: int
    ) -> None:
        self.simulation = simulation
        self.name = name
        self.group = group
        self.instance_id = instance_id
        self.client = Client(name, "/127.0.0.1", version)
        self.member_id = ""
        self.generation = -1
        self.is_alive = True
        self.resumes_at_ms = 0
        self.owned: tuple[int, ...] | None = None
        self.positions: dict[int, int] = {}
        """Where it goes on processing each of its partitions."""
        self.request = 0
        """The number of the request under way: an answer to an older one comes too late."""

    def __repr__(self) -> str:
        return f"<{self.name} {self.member_id} generation {self.generation} owns {self.owned}>"

    @property
    def owner(self) -> str:
        """Who owns partitions: a static member stays the same under another id."""
        return self.instance_id or self.member_id

    # What it does

    def start(self) -> None:
        """Begin by joining."""
        self._join()

    def crash(self) -> None:
        """Stop without a word."""
        self.is_alive = False
        self.owned = None

    def leave(self) -> None:
        """Say goodbye. Static members do not: they will be back."""
        if self.instance_id is None and self.member_id:
            request = leave_request(self.group, (self.member_id, None))
            self.simulation.tell(self, "leave_group", request)
        self.crash()

    def _join(self) -> None:
        self.owned = None
        # Some applications change what they read, so the metadata may differ from one join to the next.
        metadata = subscription(TOPIC) + self.simulation.rng.choice((b"", b"", b"x"))
        request = join_request(
            self.group,
            self.member_id,
            instance_id=self.instance_id if self.client.version >= 5 else None,
            session_timeout_ms=SESSION_MS,
            protocols=(("range", metadata),),
        )
        self._ask("join_group", request, self._joined)

    def _joined(self, answer: JoinGroupResponse) -> None:
        match answer.error_code:
            case ErrorCode.NONE:
                self.member_id, self.generation = answer.member_id, answer.generation_id
                assignments = {}
                if answer.leader == self.member_id and not answer.skip_assignment:
                    assignments = self.simulation.assign([member.member_id for member in answer.members])
                self._sync(assignments)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                self._join()
            case code:
                self._recover(code)

    def _sync(self, assignments: dict[str, bytes]) -> None:
        request = sync_request(
            self.group,
            self.generation,
            self.member_id,
            assignments,
            instance_id=self.instance_id if self.client.version >= 5 else None,
        )
        self._ask("sync_group", request, self._synced)

    def _synced(self, answer: Any) -> None:
        if answer.error_code is not ErrorCode.NONE:
            self._recover(answer.error_code)
            return
        self.owned = tuple(answer.assignment)
        self.simulation.checks.assigned(self, self.owned)
        self._fetch_positions()

    def _fetch_positions(self) -> None:
        topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=self.owned or ()),)
        request = OffsetFetchRequestGroup(group_id=self.group, topics=topics)
        self._ask("fetch_offsets", request, self._fetched)

    def _fetched(self, answer: Any) -> None:
        if answer.error_code is not ErrorCode.NONE:
            self._recover(answer.error_code)
            return
        self.positions = {
            part.partition_index: max(part.committed_offset, 0) for part in answer.topics[0].partitions
        }
        self._later(self.simulation.rng.randrange(BEAT_MS), self._work)

    def _work(self) -> None:
        """Process some records, then commit or beat."""
        for partition in self.positions:
            count = self.simulation.rng.randrange(5)
            self.simulation.checks.processed(self, partition, count)
            self.positions[partition] += count
        if self.positions and self.simulation.rng.random() < 0.5:
            self._commit(self._worked)
        else:
            self._beat()

    def _commit(self, then: Callable[[Any], None]) -> None:
        request = commit_request(
            self.group,
            dict(self.positions),
            topic=TOPIC,
            generation=self.generation,
            member_id=self.member_id,
            instance_id=self.instance_id if self.client.version >= 5 else None,
        )
        self.simulation.checks.commit_sent(self, dict(self.positions))
        self._ask("commit_offsets", request, then)

    def _worked(self, answer: Any) -> None:
        code = answer.topics[0].partitions[0].error_code
        if code is ErrorCode.NONE:
            # A client beats whatever else it does: a commit does not tell it of a rebalance.
            self._beat()
        else:
            self._recover(code)

    def _beat(self) -> None:
        request = heartbeat_request(
            self.group,
            self.generation,
            self.member_id,
            self.instance_id if self.client.version >= 5 else None,
        )
        self._ask("heartbeat", request, self._beaten)

    def _beaten(self, answer: Any) -> None:
        match answer.error_code:
            case ErrorCode.NONE:
                self._later(BEAT_MS, self._work)
            case ErrorCode.REBALANCE_IN_PROGRESS if not self.positions:
                self._join()
            case ErrorCode.REBALANCE_IN_PROGRESS:
                # The last chance to commit, before others may get the partitions.
                self._commit(self._committed_at_last)
            case code:
                self._recover(code)

    def _committed_at_last(self, answer: Any) -> None:
        code = answer.topics[0].partitions[0].error_code
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._join()
        else:
            self._recover(code)

    # Trouble

    def _recover(self, code: ErrorCode) -> None:
        match code:
            case ErrorCode.FENCED_INSTANCE_ID:
                self.crash()
                return
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id, self.generation = "", -1
            case ErrorCode.ILLEGAL_GENERATION:
                self.generation = -1
            case _:
                assert code in _TRY_AGAIN, f"{self} was told {code.name}"
        self.owned = None
        self._later(BACKOFF_MS, self._join)

    def lost(self, request: int) -> None:
        """The connection broke, or no answer came in time."""
        if request == self.request and self.is_alive:
            self.request += 1
            self._recover(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _ask(self, method: str, request: Any, then: Callable[[Any], None]) -> None:
        if self.is_alive:
            self.request += 1
            self.simulation.ask(self, method, request, then)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        request = self.request
        self.simulation.after(delay_ms, lambda: self._act(request, action))

    def _act(self, request: int, action: Callable[[], None]) -> None:
        now_ms = self.simulation.now_ms
        if not self.is_alive or request != self.request:
            return
        if self.resumes_at_ms > now_ms:
            self.simulation.after(self.resumes_at_ms - now_ms, lambda: self._act(request, action))
        else:
            action()
