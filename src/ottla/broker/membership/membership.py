"""The broker as a member of the cluster: how it registers, keeps its session alive, and leaves.

    REGISTERING  -- the controller knows this incarnation  --> FENCED
    FENCED       -- heartbeat: caught up, so unfenced      --> MEMBER
    MEMBER       -- heartbeats, one an interval            --> MEMBER
    any          -- heartbeat: the epoch is not known      --> REGISTERING, by the same incarnation
    any          -- `leave`                                --> LEAVING, until the controller lets it go

The controller may be in the same process. Then a broker is a member some milliseconds after its start. A
heartbeat is sent at once, and not an interval later, whenever there is something to say: the broker wants in,
wants out, has lost a log directory, or is to take no new logs into one.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, Protocol

from ottla.broker.basic_node import BasicNode
from ottla.broker.deferred import Deferred
from ottla.broker.login.bound_listeners import BoundListener
from ottla.broker.logs.directory_reports import DirectoryReports
from ottla.broker.logs.partitions import Partitions
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import SUPPORTED
from ottla.metadata.image import MetadataImage
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.sessions import STANDS_MS
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log_dirs.clean_shutdown import NO_BROKER_EPOCH
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import broker_registration
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.world.scheduler import Scheduler, Timer

BACK_OFF_MS_MIN: Final = 50
LEAVING_MS_MIN: Final = 20
LEAVING_MS_MAX: Final = 500
"""How often the controller is asked whether the broker may go. The others have to learn of it first."""
LEAVE_MS_MAX: Final = 60_000
"""How long a broker waits until all of what it leads is led by others.

Deviation: Kafka waits for 5 minutes. Service managers lose patience earlier, and kill the process.
"""
ANSWERS_MS_MAX: Final = 3000
"""How long a broker that leaves waits for an answer. Without a controller there is nobody to tell."""

_logger: Final = logging.getLogger("ottla.membership")
NOTICE_FACTOR: Final = 2
"""In how many fetch timeouts of the quorum a controller notices at the latest that it has no quorum."""

_FATAL: Final = frozenset(
    (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    )
)
_REASONS: Final = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "its directories belong to another cluster",
    ErrorCode.INVALID_REGISTRATION: "another broker has a log directory with the same id",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster uses features that this release does not support",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (
        "another process is running with the same node id; stop it, or, if both were started with one join "
        "token, make another token with `ottla cluster token`"
    ),
    ErrorCode.REQUEST_TIMED_OUT: "no active controller answered",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "it is not allowed to: see super.users on the controllers",
}


class NotRegistered(Exception):
    """The controller refused this broker."""


class State(Enum):
    """How far the broker is in the cluster."""

    REGISTERING = auto()
    FENCED = auto()
    MEMBER = auto()
    LEAVING = auto()
    OVER = auto()


class MemberNode(BasicNode, Protocol):
    """A broker, as far as its session with the controller knows it."""

    broker_epoch: int

    @property
    def cluster_id(self) -> str: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def directories(self) -> LogDirectories: ...
    @property
    def directory_reports(self) -> DirectoryReports: ...


class Membership:
    """The session of a broker with the active controller, whichever that is."""

    def __init__(self, broker: MemberNode, scheduler: Scheduler, incarnation_id: Uuid) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._incarnation_id = incarnation_id
        self._listeners: Sequence[BoundListener] = ()
        self.state = State.REGISTERING
        self._joined: Deferred[None] = Deferred()
        self._left: Deferred[None] = Deferred()
        self._deadline_ms = 0
        self._failures = 0
        self._timer: Timer | None = None
        self._is_asking = False
        self._has_more_to_say = False
        # The controller has said so. The broker's own metadata may not show it yet.
        self._is_unfenced = False
        self._told_offset = -1
        self._asked_ms = 0
        self.stands_until_ms = 0
        """Until when no controller can have fenced this broker, in monotonic time. Later it may be so."""
        # Called with the answer to a heartbeat.
        self._asking: list[Callable[[], None]] = []
        # Of the run before, if its replicas are what they were.
        self._last_epoch: int | None = None

    def join(self, listeners: Sequence[BoundListener]) -> Deferred[None]:
        """Make the broker a member of the cluster that leads and follows.

        Fails with `NotRegistered` if the controller refuses the broker, or none takes it in time.
        """
        self._listeners = listeners
        clock, config = self._broker.clock, self._broker.config
        self._deadline_ms = clock.monotonic_ms() + config.initial_broker_registration_timeout_ms
        self._broker.metadata.listen(self)
        # A controller that has lost the connection, or has just begun, is to hear that the broker lives.
        self._broker.controller.when_lost = self.report
        self._register()
        return self._joined

    def report(self) -> None:
        """Send a heartbeat now: something about this broker has changed."""
        if self.state in (State.FENCED, State.MEMBER):
            self._heartbeat()

    def ask_whether_it_stands(self, tell: Callable[[], None]) -> None:
        """Send a heartbeat, and tell when `stands_until_ms` is what its answer says."""
        if self.state is State.MEMBER and self._stands_ms > 0:
            self._asking.append(tell)
            if not self._is_asking:
                self._heartbeat()

    def leave(self) -> Deferred[None]:
        """Let others take over what this broker leads, and wait until the controller lets it go."""
        if not self._joined.is_done:
            # Nobody counts on it yet.
            self.stop()
        if self.state in (State.OVER, State.LEAVING):
            return self._left
        self.state = State.LEAVING
        self._failures = 0
        self._deadline_ms = self._broker.clock.monotonic_ms() + LEAVE_MS_MAX
        self._heartbeat()
        return self._left

    def stop(self) -> None:
        """Send nothing any more."""
        self.state = State.OVER
        if self._timer is not None:
            self._timer.cancel()
        if not self._left.is_done:
            self._left.resolve(None)

    # What the metadata tells

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, _done: Callable[[], None]) -> bool:
        """Be ready for any metadata."""
        return True

    def metadata_changed(self, image: MetadataImage, _delta: MetadataDelta) -> None:
        """See whether the broker has read its own registration, and whether it is unfenced."""
        if self.state is not State.FENCED:
            return
        if self._is_unfenced:
            self._look_whether_joined()
        elif image.offset >= self._broker.broker_epoch > self._told_offset:
            # In a turn of its own: others are yet to act on this image.
            self._again(0, self._heartbeat)

    # Registering

    def _register(self) -> None:
        self.state = State.REGISTERING
        self._is_unfenced = False
        if self._last_epoch is None:
            self._last_epoch = _find_last_epoch(self._broker)
            if self._last_epoch >= 0:
                # If this start is interrupted from here on, it is still true.
                self._note_epoch(self._last_epoch)
        ask = _registration(self._broker, self._incarnation_id, self._listeners, self._last_epoch)
        timeout_ms = self._broker.config.broker_session_timeout_ms
        self._broker.controller.ask(ask, None, timeout_ms).when_done(self._registered, self._fail)

    def _registered(self, answer: BrokerRegistrationResponse) -> None:
        if self.state is not State.REGISTERING:
            return
        if answer.error_code is ErrorCode.NONE:
            self._failures = 0
            self._broker.broker_epoch = answer.broker_epoch
            self._note_epoch(answer.broker_epoch)
            self.state = State.FENCED
            self._broker.directory_reports.registered()
            self._heartbeat()
            return
        reason = _REASONS.get(answer.error_code, answer.error_code.name)
        is_late = self._broker.clock.monotonic_ms() >= self._deadline_ms
        if not self._joined.is_done and (is_late or answer.error_code in _FATAL):
            self._fail(NotRegistered(f"the broker could not be registered: {reason}"))
            return
        _logger.warning("the broker could not be registered, trying again: %s", reason)
        self._again(self._back_off_ms(), self._register)

    def _note_epoch(self, broker_epoch: int) -> None:
        """Note the epoch in all directories. Nothing is in sync in it before the next heartbeat."""
        for directory in self._broker.directories.online:
            try:
                directory.note_epoch(broker_epoch)
            except LogDirectoryOffline as error:
                # The heartbeat tells the controller.
                _logger.critical("%s", error)

    def _fail(self, error: Exception) -> None:
        if not self._joined.is_done:
            self.state = State.OVER
            self._joined.fail(error)
        elif self.state is not State.OVER:
            self._again(self._back_off_ms(), self._register)

    # Heartbeats

    def _heartbeat(self) -> None:
        if self.state is State.OVER:
            return
        if self._is_asking:
            self._has_more_to_say = True
            return
        self._is_asking, self._has_more_to_say = True, False
        ask = heartbeat(self._broker, wants_shut_down=self.state is State.LEAVING)
        self._told_offset = ask.current_metadata_offset
        self._asked_ms = self._broker.clock.monotonic_ms()
        # After half of a session there is time for another try. Sooner, a broker that is far away from the
        # controller would never learn that it was let in.
        session_ms = self._broker.config.broker_session_timeout_ms
        waits_ms = max(self._heartbeat_ms * 2, session_ms // 2)
        timeout_ms = ANSWERS_MS_MAX if self.state is State.LEAVING else waits_ms
        self._broker.controller.ask(ask, None, timeout_ms).when_done(self._answered, self._not_answered)

    @property
    def _heartbeat_ms(self) -> int:
        return self._broker.config.broker_heartbeat_interval_ms

    @property
    def _stands_ms(self) -> int:
        """How long after a heartbeat nobody takes over from the broker.

        A controller that has lost its quorum may answer until it notices, while the next one counts already.
        The controllers' sessions may be shorter than the broker's configs say, but hardly that short.
        """
        config = self._broker.config
        noticed_ms = NOTICE_FACTOR * config.controller_quorum_fetch_timeout_ms
        return min(STANDS_MS, config.broker_session_timeout_ms - noticed_ms)

    def _not_answered(self, _error: Exception) -> None:
        self._answered(
            BrokerHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, should_shut_down=False)
        )

    def _answered(self, answer: BrokerHeartbeatResponse) -> None:
        self._is_asking = False
        asking, self._asking = self._asking, []
        self._act_on(answer)
        for tell in asking:
            tell()

    def _act_on(self, answer: BrokerHeartbeatResponse) -> None:
        if self.state is State.LEAVING:
            self._go_on_leaving(answer)
        elif self.state not in (State.FENCED, State.MEMBER):
            return
        elif answer.error_code is ErrorCode.STALE_BROKER_EPOCH:
            _logger.warning("the controller does not know this broker any more, registering it again")
            self._again(self._back_off_ms(), self._register)
        elif answer.error_code is not ErrorCode.NONE:
            if answer.error_code is not ErrorCode.REQUEST_TIMED_OUT:
                _logger.warning("the controller refused a heartbeat: %s", answer.error_code.name)
            self._again(min(self._back_off_ms(), self._heartbeat_ms), self._heartbeat)
        else:
            self._failures = 0
            self._take(answer)

    def _take(self, answer: BrokerHeartbeatResponse) -> None:
        was_unfenced, self._is_unfenced = self._is_unfenced, not answer.is_fenced
        # One that is caught up has read all that was taken from it, also if it was fenced meanwhile.
        stands = self._is_unfenced and answer.is_caught_up
        self.stands_until_ms = self._asked_ms + self._stands_ms if stands else 0
        if self.state is State.FENCED and self._is_unfenced:
            self._look_whether_joined()
        elif self.state is State.MEMBER and answer.is_fenced:
            if was_unfenced:
                _logger.warning("the controller has fenced this broker: its heartbeats came too late")
                self._has_more_to_say = True
            else:
                # It is let in again when it has read that it was fenced.
                self._again(BACK_OFF_MS_MIN, self._heartbeat)
                return
        self._again(0 if self._has_more_to_say else self._heartbeat_ms, self._heartbeat)

    def _look_whether_joined(self) -> None:
        """Serve from when the node's own metadata says that the broker is unfenced."""
        broker = self._broker
        known = broker.image.brokers.get(broker.node_id)
        if known is None or known.fenced or known.broker_epoch != broker.broker_epoch:
            return
        self.state = State.MEMBER
        if not self._joined.is_done:
            self._joined.resolve(None)

    def _go_on_leaving(self, answer: BrokerHeartbeatResponse) -> None:
        """Ask again, unless the broker may go or there is nobody who would let it."""
        if answer.error_code is ErrorCode.NONE and not answer.should_shut_down:
            if self._broker.clock.monotonic_ms() < self._deadline_ms:
                self._failures += 1
                self._again(min(LEAVING_MS_MIN << self._failures, LEAVING_MS_MAX), self._heartbeat)
                return
            _logger.warning("the controller did not let the broker go in time, stopping all the same")
        elif answer.error_code is not ErrorCode.NONE:
            _logger.warning("no controller knows that the broker stops: %s", answer.error_code.name)
        self.stop()

    # Timers

    def _again(self, delay_ms: int, what: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._scheduler.call_later(delay_ms, what)

    def _back_off_ms(self) -> int:
        self._failures = min(self._failures + 1, 16)
        return min(BACK_OFF_MS_MIN << (self._failures - 1), self._heartbeat_ms)


def heartbeat(broker: MemberNode, wants_shut_down: bool = False) -> BrokerHeartbeatRequest:
    """Return what the broker reports about itself."""
    return BrokerHeartbeatRequest(
        broker_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        current_metadata_offset=broker.image.offset,
        want_fence=False,
        want_shut_down=wants_shut_down,
        offline_log_dirs=tuple(
            directory.meta.directory_id
            for directory in broker.directories.directories
            if directory.is_offline and directory.meta.directory_id is not None
        ),
        cordoned_log_dirs=tuple(
            directory.meta.directory_id
            for directory in broker.directories.online
            if directory.meta.directory_id is not None and directory.path in broker.directories.cordoned
        ),
    )


def _registration(
    broker: MemberNode, incarnation_id: Uuid, listeners: Sequence[BoundListener], last_epoch: int
) -> BrokerRegistrationRequest:
    directory_ids = [directory.meta.directory_id for directory in broker.directories.online]
    return BrokerRegistrationRequest(
        broker_id=broker.node_id,
        cluster_id=broker.cluster_id,
        incarnation_id=incarnation_id,
        listeners=tuple(
            broker_registration.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in listeners
        ),
        features=tuple(
            broker_registration.Feature(
                name=name, min_supported_version=levels.min, max_supported_version=levels.max
            )
            for name, levels in SUPPORTED.items()
        ),
        rack=broker.config.broker_rack,
        log_dirs=tuple(sorted(one for one in directory_ids if one is not None)),
        previous_broker_epoch=last_epoch,
    )


def _find_last_epoch(broker: MemberNode) -> int:
    """Return the epoch of the run before if all directories agree on one, and nothing that counts is lost.

    The controller lets such a broker keep its place among the eligible leaders (KIP-966). It takes any other
    for one that may have lost what was acknowledged.

    Deviation: in Kafka only a clean stop counts, since brokers acknowledge what is in memory. Here all below
    the high watermark is on the disk of every in-sync replica, so a kill or a power cut takes nothing of it.
    `epoch_note` says what else has to be the case.
    """
    directories = broker.directories
    if directories.offline_paths or broker.partitions.has_set_records_aside:
        return NO_BROKER_EPOCH
    if broker.partitions.lacks_a_directory:
        return NO_BROKER_EPOCH
    if directories.was_clean:
        # What was acknowledged is on disk, but may have been damaged there since.
        if any(directory.has_lost_records() for directory in directories.directories):
            return NO_BROKER_EPOCH
        epochs = {directory.clean_stop_epoch for directory in directories.directories}
    elif not _has_all_in_sync(broker):
        return NO_BROKER_EPOCH
    else:
        epochs = {directory.find_kept_epoch() for directory in directories.directories}
    return epochs.pop() if len(epochs) == 1 else NO_BROKER_EPOCH


def _has_all_in_sync(broker: MemberNode) -> bool:
    """Say whether there is a log of each partition that this broker may be elected to lead."""
    for topic in broker.image.topics:
        for number, record in topic.partitions.items():
            if broker.node_id in record.isr or broker.node_id in (record.eligible_leader_replicas or ()):
                log = broker.directories.find(TopicPartition(topic.name, number))
                if log is None or log.topic_id != topic.id:
                    return False
    return True
