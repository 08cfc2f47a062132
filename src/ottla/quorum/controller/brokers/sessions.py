"""What the active controller has heard from each broker, and when.

No record holds this. It begins with the controller and ends with it: a controller that takes over gives every
broker that is not fenced a fresh session, so that a change of leaders fences nobody. Decisions look at it;
the controller alone changes it, after it has decided.

The broker in the controller's own process needs no heartbeats: it lives as long as the controller does, and
has applied what the node has published.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.wire.metadata_records.brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

STANDS_MS: Final = 500
"""How long after a heartbeat nobody takes over from a broker, if its answer was "caught up"."""

Brokers = Mapping[int, RegisterBrokerRecord]

_NOTHING_APPLIED: Final = -1
_NO_SHUTDOWN: Final = -1
_EVERYTHING: Final = 2**63 - 1


class Incarnation(NamedTuple):
    """One incarnation of a broker."""

    broker_id: int
    epoch: int


class BrokerSessions:
    """When each broker was last heard from, how far it has applied the log, and where its shutdown began."""

    def __init__(self, timeout_ms: int = 0, own_id: int | None = None) -> None:
        self._timeout_ms = timeout_ms
        self._own_id = own_id
        self._heard_ms: dict[Incarnation, int] = {}
        self._applied: dict[Incarnation, int] = {}
        self._shutdown_offsets: dict[Incarnation, int] = {}
        self._registered_at: dict[Incarnation, int] = {}
        # Where a broker was fenced last, or something was taken that it led.
        self._deposed_at: dict[Incarnation, int] = {}
        # Until when brokers that were fenced before their session was over may live all the same.
        self._unseen_until_ms: dict[Incarnation, int] = {}
        self._held_since_ms: int | None = None
        # Since when brokers are fenced, as far as this controller has seen.
        self._away_ms: dict[int, int] = {}

    def begin(self, brokers: Brokers, last_offset: int, now_ms: int) -> None:
        """Give every broker that is not fenced a fresh session, as a controller does that takes over.

        Where a shutdown began is not known, but it was not behind `last_offset`. The broker of this node has
        to be heard from first: the one that is registered may be of the process before this one. Those that
        are fenced may have been fenced a moment ago, and may live.
        """
        for broker in brokers.values():
            self._deposed_at[_id_of(broker)] = last_offset
            if broker.fenced:
                self._unseen_until_ms[_id_of(broker)] = now_ms + self._timeout_ms
            if not broker.fenced and broker.broker_id != self._own_id:
                self._heard_ms[_id_of(broker)] = now_ms
                if broker.in_controlled_shutdown:
                    self._shutdown_offsets[_id_of(broker)] = last_offset

    def heard(self, broker: Incarnation, applied_offset: int, now_ms: int) -> None:
        """Note a heartbeat."""
        self._heard_ms[broker] = now_ms
        self._unseen_until_ms.pop(broker, None)
        self._applied[broker] = applied_offset

    def published(self, brokers: Brokers, offset: int) -> None:
        """Note how far the broker of this node has applied the log."""
        own = None if self._own_id is None else brokers.get(self._own_id)
        if own is not None:
            self._applied[_id_of(own)] = offset

    def renew(self, now_ms: int) -> None:
        """Begin all sessions again: the controller could not hear anybody for a while."""
        for broker in self._heard_ms:
            self._heard_ms[broker] = now_ms
        for broker in self._unseen_until_ms:
            self._unseen_until_ms[broker] = now_ms + self._timeout_ms
        self._away_ms.clear()

    def end(self, broker: Incarnation) -> None:
        """End a session: it is over, or the process is about to go."""
        self._heard_ms.pop(broker, None)

    def lose_sight(self, broker: Incarnation, now_ms: int) -> None:
        """End a session before its time, since the process seems to be gone. Nobody knows for sure."""
        heard_ms = self._heard_ms.pop(broker, now_ms)
        self._unseen_until_ms[broker] = heard_ms + self._timeout_ms

    def may_live(self, broker: RegisterBrokerRecord, now_ms: int) -> bool:
        """Say whether a broker that is fenced may live all the same: its session would not be over yet."""
        return now_ms <= self._unseen_until_ms.get(_id_of(broker), -1)

    def forget_unseen(self, now_ms: int) -> bool:
        """Forget brokers whose session would be over by now. Says whether there were any."""
        over = [one for one, until_ms in self._unseen_until_ms.items() if until_ms < now_ms]
        for one in over:
            del self._unseen_until_ms[one]
        return bool(over)

    def follow(self, before: Brokers, records: Sequence[Any], last_offset: int) -> None:
        """Follow records that were appended, the last of them at `last_offset`."""
        for offset, record in enumerate(records, last_offset - len(records) + 1):
            if isinstance(record, RegisterBrokerRecord):
                self._forget_other(before.get(record.broker_id), record.broker_epoch)
                self._registered_at[_id_of(record)] = offset
            elif isinstance(record, UnregisterBrokerRecord):
                self._forget_other(before.get(record.broker_id), None)
            elif isinstance(record, BrokerRegistrationChangeRecord):
                broker = Incarnation(record.broker_id, record.broker_epoch)
                if record.fenced:
                    self._shutdown_offsets.pop(broker, None)
                if record.fenced > 0:
                    self._deposed_at[broker] = last_offset
                elif record.in_controlled_shutdown:
                    self._shutdown_offsets.setdefault(broker, last_offset)

    def has_session(self, broker: Incarnation, now_ms: int) -> bool:
        """Say whether a broker has been heard from in time."""
        heard_ms = self._heard_ms.get(broker)
        return heard_ms is not None and not self._is_stale(broker, heard_ms, now_ms)

    def find_stale(self, now_ms: int) -> Incarnation | None:
        """Return a broker that was not heard from in time, if there is one."""
        for broker, heard_ms in self._heard_ms.items():
            if self._is_stale(broker, heard_ms, now_ms):
                return broker
        return None

    def note_away(self, brokers: Brokers, now_ms: int) -> None:
        """Note which brokers are away."""
        away = [one.broker_id for one in brokers.values() if one.fenced]
        self._away_ms = {one: self._away_ms.get(one, now_ms) for one in away}

    def find_left(self, leave_ms: int, now_ms: int) -> list[int]:
        """Return the brokers that have been away for so long that they have left for good."""
        return [one for one, since_ms in self._away_ms.items() if now_ms - since_ms >= leave_ms]

    def registered_at(self, broker: RegisterBrokerRecord) -> int:
        """Return an offset that a broker must have applied to know of its own registration."""
        return self._registered_at.get(_id_of(broker), broker.broker_epoch)

    def deposed(self, broker: RegisterBrokerRecord, offset: int) -> None:
        """Note up to where a broker has to have applied the log to know what it leads no more."""
        self._deposed_at[_id_of(broker)] = offset

    def knows_what_it_leads(self, broker: RegisterBrokerRecord, applied_offset: int) -> bool:
        """Say whether a broker has applied all that took anything from it."""
        return applied_offset >= self._deposed_at.get(_id_of(broker), _NOTHING_APPLIED)

    def hold(self, now_ms: int) -> bool:
        """Tell no broker that it is caught up. Says whether that was so for long enough."""
        if self._held_since_ms is None:
            self._held_since_ms = now_ms
        return now_ms - self._held_since_ms >= STANDS_MS

    def release(self) -> None:
        """Tell brokers again that they are caught up."""
        self._held_since_ms = None

    @property
    def is_held(self) -> bool:
        """Whether brokers are about to lose what they lead."""
        return self._held_since_ms is not None

    def has_been_seen_to_stop(self, brokers: Brokers, broker: RegisterBrokerRecord) -> bool:
        """Say whether every live broker has applied that this one leads nothing any more."""
        began = self._shutdown_offsets.get(_id_of(broker), _NO_SHUTDOWN)
        return began <= min(
            (
                self._applied.get(_id_of(other), _NOTHING_APPLIED)
                for other in brokers.values()
                if not other.fenced and not other.in_controlled_shutdown
            ),
            default=_EVERYTHING,
        )

    def _is_stale(self, broker: Incarnation, heard_ms: int, now_ms: int) -> bool:
        return broker.broker_id != self._own_id and heard_ms + self._timeout_ms < now_ms

    def _forget_other(self, known: RegisterBrokerRecord | None, epoch: int | None) -> None:
        """Forget an incarnation, unless it is that of `epoch`."""
        if known is None or known.broker_epoch == epoch:
            return
        broker = _id_of(known)
        for noted in (
            self._heard_ms,
            self._applied,
            self._shutdown_offsets,
            self._registered_at,
            self._deposed_at,
            self._unseen_until_ms,
        ):
            noted.pop(broker, None)


def _id_of(broker: RegisterBrokerRecord) -> Incarnation:
    return Incarnation(broker.broker_id, broker.broker_epoch)


NO_SESSIONS: Final = BrokerSessions()
"""What a controller knows that has heard from nobody."""
