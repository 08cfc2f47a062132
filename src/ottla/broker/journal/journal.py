"""What a node saw and the protocol never shows, kept for those who ask why.

Parts of the node note events: who a producer is, why a member is gone, what was refused. Everything else is
sampled from what the node has anyway (`sampling.py`). Once a second all of it becomes one batch of the topic
`__ottla_journal` (`writing.py`). Nothing is noted on the way of a plain produce or fetch.

A record's key is its subject, its value is JSON with the time `t`, the node `n`, the kind `k`, and a few
fields of that kind. Of one kind and subject the first events of a minute are kept whole; of those after them
only the number, as `more`. What does not fit is counted and told, too.
"""

from collections import Counter
from typing import Any, Final

from ottla.broker.serving.context import RequestContext
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.world.clock import Clock

WHOLE_MAX: Final = 30
"""How many events of one kind and subject are kept whole in a minute."""
SAMPLES_MAX: Final = 600
"""The same of what is sampled, which comes at most once in an interval for each connection."""
SAMPLED: Final = frozenset(("appended-at", "fetch-position", "fetch-stopped", "writes"))
PENDING_MAX: Final = 2_000
"""How many events wait to be written; a second of a busy node has a few dozen."""
OF_CLIENT_MAX: Final = 500
"""How many of them a principal at one address causes in a second. It must not hide what happens to others."""
SUBJECTS_MAX: Final = 100_000
"""How many kinds and subjects are counted in a minute."""
TEXT_MAX: Final = 500
"""How much of a text one event has. Clients choose most of them, and may choose long ones."""
TOPICS_MAX: Final = 20
"""How many names one event has."""
LOGINS_MAX: Final = 5
"""How many client ids that could not log in are kept in a second."""
_LOGIN: Final = ApiKey.SASL_AUTHENTICATE.name.lower()
_CLIENT_ID_MAX: Final = 100
_MINUTE_MS: Final = 60_000
_LEAVING_MS: Final = 1_500
"""So long after a member has left it is asked whether its client is still there."""

ORDINARY: Final = frozenset(
    (
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)
"""Errors that healthy clients meet: they say where to ask, or to ask again."""


class Event:
    """One thing that happened. The value is made when it is written."""

    __slots__ = ("facts", "kind", "subject", "time_ms")

    def __init__(self, subject: str, kind: str, time_ms: int, facts: dict[str, Any]) -> None:
        self.subject = subject
        self.kind = kind
        self.time_ms = time_ms
        self.facts = facts

    def encode(self, node_id: int) -> tuple[bytes, bytes]:
        """Return the key and the value of the event's record."""
        # Imported only here: a start does without it.
        import json

        value = {"t": self.time_ms, "n": node_id, "k": self.kind, **self.facts}
        return self.subject.encode(), json.dumps(value, separators=(",", ":")).encode()


def is_follower(context: RequestContext) -> bool:
    """Say whether a connection is that of another broker that copies partitions from here."""
    if context.fetched is None:
        return False
    ask = context.fetched[0]
    return max(ask.replica_id, ask.replica_state.replica_id) >= 0


class Journal:
    """Gathers events until they are written. While it is off, it takes none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_on = False
        self.contexts: dict[RequestContext, int] = {}
        """The connections there are, in the order they came, and when."""
        self.gone: list[tuple[RequestContext, bool]] = []
        """Readers whose last position is still to be written."""
        self.gone_writers: list[tuple[RequestContext, int]] = []
        """Producers without an id that are gone, and that nobody may have looked at."""
        self._events: list[Event] = []
        self._lost = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._minute = 0
        self._refused: Counter[tuple[str, str, str, str]] = Counter()
        self._caused: Counter[tuple[str, str]] = Counter()
        """How many events each principal at each address has caused in this second."""
        self._leaving: list[tuple[Event, RequestContext]] = []

    def note(self, subject: str, kind: str, **facts: Any) -> None:
        """Keep an event, if there is room for it."""
        if not self.is_on:
            return
        now_ms = self._clock.now_ms()
        if now_ms // _MINUTE_MS != self._minute:
            self._minute = now_ms // _MINUTE_MS
            self._tell_more(now_ms)
        subject = _cut(subject)
        if len(self._counts) >= SUBJECTS_MAX and (subject, kind) not in self._counts:
            self._lost += 1
            return
        self._counts[subject, kind] += 1
        if self._counts[subject, kind] > _whole_max(kind):
            return
        self._keep(Event(subject, kind, now_ms, facts))

    def take(self) -> list[Event]:
        """Return what has happened since the last time."""
        now_ms = self._clock.now_ms()
        for (client, host, api, error), count in self._refused.items():
            self.note(client_subject(client, host), "request-refused", api=api, error=error, count=count)
        self._refused.clear()
        self._caused.clear()
        self._tell_leaving(now_ms)
        events, self._events = self._events, []
        if self._lost:
            events.append(Event("journal", "lost", now_ms, {"count": self._lost}))
            self._lost = 0
        return events

    def put_back(self, events: list[Event]) -> None:
        """Keep events that could not be written yet, as far as there is room for them."""
        waiting = events + self._events
        self._events = waiting[:PENDING_MAX]
        for event in waiting[PENDING_MAX:]:
            # Among those that do not fit may be an earlier count of what was lost.
            self._lost += event.facts["count"] if event.kind == "lost" else 1

    # What connections tell

    def opened(self, context: RequestContext) -> None:
        """A client has come."""
        self.contexts[context] = self._clock.now_ms()

    def closed(self, context: RequestContext) -> None:
        """A client is gone."""
        opened_ms = self.contexts.pop(context, 0)
        if self.is_on and context.fetched and not is_follower(context) and len(self.gone) < PENDING_MAX:
            # A fetch that waits for records will never bring any.
            self.gone.append((context, context.abandon is None))
        if self.is_on and context.wrote and len(self.gone_writers) < PENDING_MAX:
            self.gone_writers.append((context, opened_ms))

    def refused(self, context: RequestContext, errors: "list[tuple[ApiKey, ErrorCode]]") -> None:
        """A client got errors. They are counted, and written once a second.

        Followers are left out: they may learn of a new topic or leader before this node does, and ask again.
        """
        is_counted = self.is_on and not is_follower(context)
        for api, error in errors:
            if not is_counted or error in ORDINARY:
                continue
            key = _cut(context.client_id or ""), context.peer_host, api.name.lower(), error.name
            if key in self._refused or (len(self._refused) < PENDING_MAX and self._may_cause(context)):
                self._refused[key] += 1
        errors.clear()

    def _may_cause(self, context: RequestContext) -> bool:
        """Say whether a client may cause one more event in this second. Those it may not are counted."""
        who = str(context.principal), context.peer_host
        self._caused[who] += 1
        if self._caused[who] > OF_CLIENT_MAX:
            self._lost += 1
            return False
        return True

    def _note_of(self, context: RequestContext, subject: str, kind: str, **facts: Any) -> None:
        """Keep an event that a client has caused."""
        if self.is_on and self._may_cause(context):
            self.note(subject, kind, **facts)

    def login_refused(self, context: RequestContext, error: ErrorCode) -> None:
        """A client could not log in. Its client id is what it says itself, so few of them are kept.

        Anybody may send any number of client ids here. Those that are too many are counted without one.
        """
        if not self.is_on:
            return
        keys = [key for key in self._refused if key[2] == _LOGIN]
        name = context.client_id or "" if len(keys) < LOGINS_MAX else ""
        if len(self._refused) < PENDING_MAX:
            self._refused[name[:_CLIENT_ID_MAX], context.peer_host, _LOGIN, error.name] += 1

    def topics_unknown(self, context: RequestContext, names: list[str]) -> None:
        """A client has asked for topics that do not exist, and that it does not create."""
        subject = client_subject(context.client_id or "", context.peer_host)
        self._note_of(
            context, subject, "topic-unknown", client=context.client_id or "", topics=names[:TOPICS_MAX]
        )

    def join_refused(
        self, context: RequestContext, group_id: str, error: ErrorCode, offers: "tuple[str, ...]"
    ) -> None:
        """A client could not join a group. `offers` are the assignors that it knows."""
        self._note_of(
            context,
            client_subject(context.client_id or "", context.peer_host),
            "join-refused",
            group=group_id,
            client=context.client_id or "",
            host=context.peer_host,
            port=context.peer_port,
            error=error.name,
            offers=list(offers[:TOPICS_MAX]),
        )

    def records_deleted(self, context: RequestContext, topic: str, partition: int, offset: int) -> None:
        """A client has given up the records before an offset."""
        self._note_of(
            context,
            f"topic/{topic}",
            "records-deleted",
            at=f"{topic}/{partition}",
            before=offset,
            client=context.client_id or "",
            host=context.peer_host,
        )

    def throttled(self, context: RequestContext, milliseconds: int, quota: str) -> None:
        """A client was over a quota."""
        self._note_of(
            context,
            client_subject(context.client_id or "", context.peer_host),
            "throttled",
            ms=milliseconds,
            quota=quota,
        )

    def producer_seen(
        self, context: RequestContext, producer_id: int, epoch: int, transactional_id: str | None
    ) -> None:
        """A client has got its producer id."""
        self._note_of(
            context,
            f"producer/{producer_id}",
            "producer-seen",
            producer=producer_id,
            epoch=epoch,
            txn=transactional_id,
            client=context.client_id or "",
            host=context.peer_host,
            port=context.peer_port,
            principal=str(context.principal),
        )

    # What coordinators tell

    def member_left(self, context: RequestContext, group_id: str, member_id: str, reason: str | None) -> None:
        """A member has asked to leave. It is written a little later, with whether its client is still there.

        A client that closes leaves and is gone. One that has exceeded its poll interval leaves and stays.
        """
        if self.is_on and len(self._leaving) < PENDING_MAX and self._may_cause(context):
            facts = {
                "group": group_id,
                "member": member_id,
                "client": context.client_id or "",
                "host": context.peer_host,
                "why": "left",
                "reason": reason,
            }
            event = Event(member_subject(group_id, member_id), "member-left", self._clock.now_ms(), facts)
            self._leaving.append((event, context))

    def member_lost(self, group_id: str, member_id: str, client_id: str, why: str, after_ms: int) -> None:
        """A member was removed from its group: it sent nothing for too long."""
        self.note(
            member_subject(group_id, member_id),
            "member-left",
            group=group_id,
            member=member_id,
            client=client_id,
            why=why,
            after_ms=after_ms,
            connected=any(context.client_id == client_id for context in self.contexts),
        )

    def _tell_leaving(self, now_ms: int) -> None:
        waiting = []
        for event, context in self._leaving:
            is_there = context in self.contexts
            if is_there and now_ms - event.time_ms < _LEAVING_MS:
                waiting.append((event, context))
                continue
            event.facts["connected"] = is_there
            self._keep(event)
        self._leaving = waiting

    def _keep(self, event: Event) -> None:
        if len(self._events) < PENDING_MAX:
            event.facts = {name: _cut_all(fact) for name, fact in event.facts.items()}
            self._events.append(event)
        else:
            self._lost += 1

    def _tell_more(self, now_ms: int) -> None:
        for (subject, kind), count in self._counts.items():
            if count > _whole_max(kind):
                self._keep(Event(subject, kind, now_ms, {"more": count - _whole_max(kind)}))
        self._counts.clear()


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def _cut_all(fact: Any) -> Any:
    """Return a fact without texts that are too long."""
    if isinstance(fact, str):
        return _cut(fact)
    return [_cut_all(item) for item in fact] if isinstance(fact, list) else fact


def _whole_max(kind: str) -> int:
    return SAMPLES_MAX if kind in SAMPLED else WHOLE_MAX


def client_subject(client_id: str, host: str) -> str:
    """Return the key of what a client did."""
    return f"client/{client_id}@{host}"


def member_subject(group_id: str, member_id: str) -> str:
    """Return the key of what happened to a member."""
    return f"member/{group_id}/{member_id}"


def partition_subject(topic: str, partition: int) -> str:
    """Return the key of what happened to a partition."""
    return f"partition/{topic}/{partition}"
