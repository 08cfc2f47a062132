"""Fetch sessions (KIP-227): a reader names its partitions once, and later only what changed.

    (id 0, epoch -1)   no session: everything is in the request
    (id n, epoch -1)   the same, and session n ends
    (id n, epoch 0)    everything is in the request, and a new session begins; session n ends
    (id n, epoch e)    session n goes on: e has to be the one after the last

An answer in a session leaves out partitions without news. News are records, an error, a moved high watermark
or log start. Partitions that returned records go to the end of the row, so that none starves behind the
others.

When the cache is full, a session makes room if it was not used for two minutes, or if it is old enough and
has fewer partitions than the newcomer. Pure: time and session ids come from outside.

Deviation: sessions are also bounded by how many partitions they have, each and all together. In Kafka a
thousand sessions may each have as many as a request can name, and stay when their readers are gone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import TOPIC_IDS_FROM, FetchPartition, FetchRequest, PartitionData

EVICTION_MS: Final = 120_000
SESSION_PARTITIONS_MAX: Final = 100_000
"""How many partitions a session may have. Each takes about 500 bytes."""
PARTITIONS_MAX: Final = 250_000
"""How many partitions all sessions may have together."""
NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF
_FEW_PARTITIONS: Final = 100

PartitionKey: TypeAlias = tuple[str | Uuid, int]
"""A topic as the request names it, by name or by id, and the number of the partition."""


class SessionPartition:
    """A partition of a session: what was asked last, and what was answered last."""

    __slots__ = ("ask", "high_watermark", "log_start_offset")

    def __init__(self, ask: FetchPartition) -> None:
        self.ask = ask
        self.high_watermark = -1
        self.log_start_offset = -1

    def note(self, answer: PartitionData) -> bool:
        """Take note of an answer, and say whether it has news."""
        has_news = (
            bool(answer.records) or answer.diverging_epoch.epoch >= 0 or answer.preferred_read_replica >= 0
        )
        if self.high_watermark != answer.high_watermark or self.log_start_offset != answer.log_start_offset:
            has_news = True
            self.high_watermark = answer.high_watermark
            self.log_start_offset = answer.log_start_offset
        if answer.error_code is not ErrorCode.NONE or answer.diverging_epoch.epoch >= 0:
            # Whatever comes after an error is news. A follower whose log differs takes nothing but where to
            # cut it, so a high watermark that stays the same has to be sent again. Deviation: Kafka does not,
            # and such a follower knows it only when it moves.
            self.high_watermark = -1
            has_news = True
        return has_news


class FetchSession:
    """The partitions one reader follows."""

    __slots__ = ("created_ms", "epoch", "id", "is_follower", "partitions", "used_ms", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, is_follower: bool, now_ms: int) -> None:
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.is_follower = is_follower
        self.epoch = 1
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.partitions: dict[PartitionKey, SessionPartition] = {}

    def update(self, ask: FetchRequest) -> None:
        """Take over what a request adds, changes and forgets."""
        partitions = self.partitions
        for key, partition in asked_partitions(ask, self.uses_topic_ids):
            known = partitions.get(key)
            if known is None:
                partitions[key] = SessionPartition(partition)
            else:
                if known.ask.current_leader_epoch != partition.current_leader_epoch:
                    # The reader begins again, and takes no answer to what it asked before. Without this a
                    # follower of an idle partition would never learn the high watermark.
                    known.high_watermark = -1
                known.ask = partition
        for topic in ask.forgotten_topics_data:
            name: str | Uuid = topic.topic_id if self.uses_topic_ids else topic.topic
            for number in topic.partitions:
                partitions.pop((name, number), None)

    def move_to_end(self, keys: Iterable[PartitionKey]) -> None:
        """Put partitions that had their turn behind those that had not."""
        for key in keys:
            self.partitions[key] = self.partitions.pop(key)


class FetchPlan(NamedTuple):
    """What to read, and in which session to answer."""

    error: ErrorCode = ErrorCode.NONE
    partitions: Sequence[tuple[PartitionKey, FetchPartition]] = ()
    session: FetchSession | None = None
    is_incremental: bool = False
    begins_session: bool = False


class FetchSessions:
    """All sessions of a broker."""

    def __init__(self, sessions_max: int, pick_id: Callable[[], int]) -> None:
        """`pick_id` returns a random positive 31-bit number."""
        self.sessions_max = sessions_max
        self.partitions_max = PARTITIONS_MAX
        self._pick_id = pick_id
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def count_partitions(self) -> int:
        """Return how many partitions all sessions have together."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def plan(
        self,
        ask: FetchRequest,
        version: int,
        now_ms: int,
        asked: Sequence[tuple[PartitionKey, FetchPartition]] | None = None,
    ) -> FetchPlan:
        """Decide what a request asks for, and change its session accordingly.

        `asked` has the partitions that it lists, where they are known already.
        """
        uses_topic_ids = version >= TOPIC_IDS_FROM
        if ask.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(ask.session_id, None)
            if asked is None:
                asked = tuple(asked_partitions(ask, uses_topic_ids))
            return FetchPlan(partitions=asked, begins_session=ask.session_epoch == INITIAL_EPOCH)
        session = self._sessions.get(ask.session_id)
        if session is None:
            return FetchPlan(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != ask.session_epoch:
            return FetchPlan(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchPlan(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if ask.topics or ask.forgotten_topics_data:
            session.update(ask)
        if len(session.partitions) > SESSION_PARTITIONS_MAX:
            del self._sessions[session.id]
            return FetchPlan(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchPlan()
        session.used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < _EPOCH_MAX else 1
        partitions = [(key, partition.ask) for key, partition in session.partitions.items()]
        return FetchPlan(partitions=partitions, session=session, is_incremental=True)

    def begin(
        self,
        asked: Sequence[tuple[PartitionKey, FetchPartition]],
        version: int,
        is_follower: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """Begin a session, or return None when there is no room for it."""
        if not self._has_room(len(asked), now_ms):
            return None
        partitions = {key: SessionPartition(partition) for key, partition in asked}
        if len(self._sessions) >= self.sessions_max and not self._evict_for(
            len(partitions), is_follower, now_ms
        ):
            return None
        session_id = self._pick_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._pick_id()
        session = FetchSession(session_id, version >= TOPIC_IDS_FROM, is_follower, now_ms)
        session.partitions = partitions
        self._sessions[session_id] = session
        return session

    def end(self, session_id: int) -> None:
        """End a session, if there is one of this id."""
        self._sessions.pop(session_id, None)

    def _has_room(self, size: int, now_ms: int) -> bool:
        """Say whether there is room for this many partitions, after those are gone that nobody uses."""
        if size > SESSION_PARTITIONS_MAX:
            return False
        if size <= _FEW_PARTITIONS:
            # Counting all would take longer than what it saves.
            return True
        for session in list(self._sessions.values()):
            if self.count_partitions() + size <= self.partitions_max:
                break
            if now_ms - session.used_ms > EVICTION_MS:
                self._evict(session)
        return self.count_partitions() + size <= self.partitions_max

    def _evict_for(self, size: int, is_follower: bool, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > EVICTION_MS:
            return self._evict(oldest)
        candidates = [session for session in self._sessions.values() if _may_go(session, is_follower, now_ms)]
        if not candidates:
            return False
        smallest = min(candidates, key=lambda session: (session.is_follower, len(session.partitions)))
        if (smallest.is_follower, len(smallest.partitions)) < (is_follower, size):
            return self._evict(smallest)
        return False

    def _evict(self, session: FetchSession) -> bool:
        del self._sessions[session.id]
        self.evictions += 1
        return True


def asked_partitions(
    ask: FetchRequest, uses_topic_ids: bool
) -> Iterable[tuple[PartitionKey, FetchPartition]]:
    """Give the partitions that a request lists, in its order."""
    for topic in ask.topics:
        name: str | Uuid = topic.topic_id if uses_topic_ids else topic.topic
        for partition in topic.partitions:
            yield (name, partition.partition), partition


def _may_go(session: FetchSession, for_follower: bool, now_ms: int) -> bool:
    """A session has two minutes for itself. A consumer's may make room for a follower's even before."""
    if now_ms - session.created_ms > EVICTION_MS:
        return True
    return for_follower and not session.is_follower
