"""The active controller: it decides, appends what was decided, and answers when that is committed.

    request -> decide -> records -> replay -> append -> (committed, published) -> reply

It exists only while its node leads the quorum. Its image has everything that was appended, and is what
decisions look at; it begins as what is committed when the node takes over. Replies leave in the order of the
decisions, and only after the node has published what they rest on: a client that learns that a topic exists
can write to it at once.

When the node leads no longer, `resign` refuses everything that waits, and the controller is thrown away with
its image. What it appended is in the log still: the next leader may commit it, or the log may lose it.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.in_force import ConfigsInForce
from ottla.metadata.features import metadata_version_of
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.quorum.controller.brokers.fencing import deposed_leaders, fence_incarnation
from ottla.quorum.controller.brokers.sessions import BrokerSessions, Incarnation
from ottla.quorum.controller.deciders import NOT_CONTROLLER, Decider
from ottla.quorum.controller.decision import (
    RECORDS_MAX,
    Caller,
    Charge,
    ControllerView,
    Randomness,
    Refusal,
    free_of_charge,
)
from ottla.quorum.controller.mutation_quota import MutationCharge, MutationQuotas
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.controller.upkeep import Upkeep
from ottla.quorum.quorum_protocols import RecordWriter, Replay
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.world.clock import Clock

_logger: Final = logging.getLogger("ottla.controller")


class ControllerWorld(NamedTuple):
    """What controllers of a node use and leave to the next one."""

    clock: Clock
    random: Randomness
    mutation_quotas: MutationQuotas


class _Parked(NamedTuple):
    """An answer that waits until everything up to `offset` is published."""

    offset: Offset
    answer: Callable[[], None]
    refuse: Callable[[], None]


class ActiveController:
    """The one that changes the cluster's metadata."""

    def __init__(
        self,
        writer: RecordWriter,
        loader: MetadataLoader,
        settings: ControllerSettings,
        world: ControllerWorld,
    ) -> None:
        """`loader` has been fed everything that is committed, which is the whole log at this moment."""
        self._writer = writer
        self._loader = loader
        self._settings = settings
        self._clock, self._random, self._mutation_quotas = world
        self._parked: deque[_Parked] = deque()
        self._published = self._appended = Offset(writer.log_end_offset - 1)
        self._appended_ms = self._clock.now_ms()
        self.image = loader.image
        self._configs = ConfigsInForce(
            EffectiveConfigs(settings.static_configs), settings.node_id, lambda: self.image
        )
        config, monotonic_ms = self._configs.now().node, self._clock.monotonic_ms()
        self._upkeep = Upkeep(config, monotonic_ms)
        self.sessions = BrokerSessions(config.broker_session_timeout_ms, settings.node_id)
        self.sessions.begin(self.image.brokers, self._appended, monotonic_ms)

    def handle(
        self, decider: Decider, ask: Any, caller: Caller | None, answer: Callable[[Any], None]
    ) -> None:
        """Decide what to do about a request. `answer` is called when it is done, maybe at once."""
        charge = self._charge(decider, caller)
        decision = decider.decide(self.view(charge or free_of_charge, caller), ask)
        if decision.kraft_version is not None:
            error, message = self._writer.upgrade_kraft_version(decision.kraft_version)
            if error is not ErrorCode.NONE:
                answer(decider.refuse(ask, Refusal(error, message)))
                return
            self._appended = Offset(self._writer.log_end_offset - 1)
        if decision.records:
            self.append(decision.records)
        if decider.note is not None:
            decider.note(self.sessions, ask, decision.reply, self._clock.monotonic_ms())

        def reply() -> None:
            answer(decision.reply if charge is None else self._throttled(decision.reply, charge))

        if self._appended > self._published:
            # A refusal or a reading answer may rest on what is not committed yet, so it waits for that, too.
            def refuse() -> None:
                answer(decider.refuse(ask, NOT_CONTROLLER))

            self._parked.append(_Parked(self._appended, reply, refuse))
        else:
            reply()

    def view(self, charge: Charge = free_of_charge, caller: Caller | None = None) -> ControllerView:
        """Return what a decision made now may look at."""
        image = self.image
        return ControllerView(
            image,
            self._writer.log_end_offset,
            self._clock.now_ms(),
            self._settings,
            self._configs.now(),
            self._random,
            self._writer.kraft_version,
            charge,
            self.sessions,
            self._clock.monotonic_ms(),
            caller,
            self._writer.find_upgrade_error,
        )

    def append(self, records: Sequence[Any]) -> None:
        """Append records, as one change.

        What cannot be appended as a whole must change nothing, so it is encoded first. And records that do
        not fit the metadata must not reach the log, so they are replayed before they are appended.
        """
        now_ms = self._clock.now_ms()
        version = metadata_version_of(self.image.features)
        prepared = self._writer.prepare(records, version, RECORDS_MAX, now_ms)
        loader = self._loader.fork()
        loader.feed(records, prepared.position)
        image, delta = loader.take()
        self._writer.append(prepared._replace(replay=Replay(loader, delta)), now_ms)
        if delta.brokers:
            self.sessions.follow(self.image.brokers, records, prepared.position.offset)
        for broker_id in deposed_leaders(delta):
            if broker_id in image.brokers:
                self.sessions.deposed(image.brokers[broker_id], prepared.position.offset)
        self._loader, self.image = loader, image
        self._appended, self._appended_ms = prepared.position.offset, now_ms

    def published(self, offset: Offset) -> None:
        """Give the answers that rest on nothing after `offset`."""
        self._published = max(self._published, offset)
        self.sessions.published(self.image.brokers, self._published)
        while self._parked and self._parked[0].offset <= offset:
            self._parked.popleft().answer()

    def resign(self) -> None:
        """Refuse everything that waits. What was not committed is given up."""
        while self._parked:
            self._parked.popleft().refuse()

    def tick(self) -> int:
        """Do what is due. Returns after how many milliseconds to come again."""
        left_ms = self._upkeep.run(self, self._clock.monotonic_ms())
        idle_ms = self._configs.now().node.metadata_max_idle_interval_ms
        return min(left_ms, self._maybe_append_no_op(idle_ms)) if idle_ms > 0 else left_ms

    def broker_is_gone(self, broker: Incarnation) -> None:
        """Fence a broker whose process seems to be gone, without waiting for its session to end."""
        self.sessions.lose_sight(broker, self._clock.monotonic_ms())
        records = fence_incarnation(self.view(), broker)
        if records:
            _logger.info("fencing broker %d: its process seems to have ended", broker.broker_id)
            self.append(records)

    def _maybe_append_no_op(self, interval_ms: int) -> int:
        """Append a record that says nothing when there was no other for `interval_ms`.

        Nodes that follow the log see by it that the leader lives and that they have caught up. Returns how
        many milliseconds are left.
        """
        left_ms = self._appended_ms + interval_ms - self._clock.now_ms()
        if left_ms > 0:
            return left_ms
        self.append([NoOpRecord()])
        return interval_ms

    def _charge(self, decider: Decider, caller: Caller | None) -> MutationCharge | None:
        limits = self.image.quotas
        if decider.strict_from is None or caller is None or not limits:
            return None
        config = self.view().configs.node
        window_s = config.controller_quota_window_num * config.controller_quota_window_size_seconds
        return self._mutation_quotas.charge(
            limits, caller, decider.strict_from, window_s, self._clock.monotonic_ms()
        )

    def _throttled(self, response: Any, charge: MutationCharge) -> Any:
        return replace(response, throttle_time_ms=charge.throttle_ms(self._clock.monotonic_ms()))
