"""The active controller: it decides, appends what was decided, and answers when that is committed.

    request -> decide -> records -> append -> replay -> (synced) -> prepare -> publish -> listeners -> reply

Two images are kept. `image` has everything that was appended, and is what decisions look at. The published
one has what is committed, and is what the rest of the node acts on. Replies leave in the order of the
decisions, and only after the listeners have acted: who is told that a topic exists can write to it at once.

A failure to write the log is not handled here. What was decided is in `image` then but in no log, so the only
way out is to stop the node and load the log again.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import metadata_version_of
from ottla.metadata.image import MetadataImage, Position
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.quorum.controller.decision import (
    RECORDS_MAX,
    Charge,
    ControllerView,
    Decide,
    Randomness,
    free_of_charge,
)
from ottla.quorum.controller.settings import ControllerSettings
from ottla.quorum.voters import VoterIdentity

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")


class RecordWriter(Protocol):
    """The metadata log, as its leader writes it."""

    @property
    def me(self) -> VoterIdentity:
        """Who leads."""

    @property
    def epoch(self) -> int:
        """The epoch that new records belong to."""

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""

    @property
    def high_watermark(self) -> Offset:
        """Everything below is committed."""

    def encode(
        self, records: Sequence[Any], metadata_version: int, base_offset: Offset, now_ms: int
    ) -> bytearray:
        """Make a batch of records. Raises `BatchTooLarge` if there are too many for one."""

    def append(self, batch: bytearray, now_ms: int) -> None:
        """Append a batch. When it is committed, `Controller.committed` is called."""


class _Parked(NamedTuple):
    """What is to be done when everything up to `offset` is committed."""

    offset: Offset
    image: MetadataImage
    delta: MetadataDelta | None
    answer: Callable[[], None] | None


Prepare: TypeAlias = Callable[[MetadataImage, MetadataDelta, Callable[[], None]], bool]
"""Make ready what the listeners of an image need and what takes long, such as the logs of new partitions.

Says whether all is ready. If not, what is given last is called when it is, and not before this has returned.
"""


def needs_nothing(_image: MetadataImage, _delta: MetadataDelta, _done: Callable[[], None]) -> bool:
    """Leave everything to the listeners, which then take as long as it takes."""
    return True


class Controller:
    """The one that changes the cluster's metadata."""

    def __init__(
        self,
        writer: RecordWriter,
        loader: MetadataLoader,
        published: PublishedMetadata,
        settings: ControllerSettings,
        random: Randomness,
    ) -> None:
        """`loader` has been fed the log so far. What it holds is published at once."""
        self.writer = writer
        self._loader = loader
        self._random = random
        self._parked: deque[_Parked] = deque()
        self._committed = Offset(-1)
        self._is_preparing = False
        self.prepare: Prepare = needs_nothing
        self._configs = EffectiveConfigs(settings.static_configs)
        self._overrides: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self.settings = settings
        self.published = published
        self.image, delta = loader.take()
        published.publish(self.image, delta)

    def handle(
        self,
        decide: Decide[Ask, Reply],
        ask: Ask,
        now_ms: int,
        answer: Callable[[Reply], None],
        charge: Charge = free_of_charge,
    ) -> None:
        """Decide what to do about a request. `answer` is called when it is done, maybe at once."""
        decision = decide(self.view(now_ms, charge), ask)
        if decision.records:
            self._append(decision.records, now_ms, lambda: answer(decision.reply))
        elif self._parked:
            # A refusal or a reading answer may rest on what is not committed yet, so it waits for that.
            last = self._parked[-1]
            self._parked.append(_Parked(last.offset, last.image, None, lambda: answer(decision.reply)))
        else:
            answer(decision.reply)

    def view(self, now_ms: int, charge: Charge = free_of_charge) -> ControllerView:
        """Return what a decision made now may look at."""
        image = self.image
        overrides = (image.default_broker_config(), image.broker_config(self.settings.node_id))
        if overrides != self._overrides:
            self._overrides = overrides
            self._configs = self._configs.with_dynamic(*overrides)
        return ControllerView(
            image,
            self.writer.log_end_offset,
            now_ms,
            self.settings,
            self._configs,
            self._random,
            self.writer.kraft_version,
            charge,
        )

    def append(self, records: Sequence[Any], now_ms: int) -> None:
        """Append records that nobody waits for."""
        self._append(records, now_ms, None)

    def committed(self, offset: Offset) -> None:
        """Publish and answer what lies up to and including `offset`, as soon as all is prepared for it."""
        self._committed = offset
        self._go_on()

    def _go_on(self) -> None:
        while not self._is_preparing and self._parked and self._parked[0].offset <= self._committed:
            parked = self._parked[0]
            if parked.delta is None or self.prepare(parked.image, parked.delta, self._prepared):
                self._publish_next()
            else:
                self._is_preparing = True

    def _prepared(self) -> None:
        self._is_preparing = False
        self._publish_next()
        self._go_on()

    def _publish_next(self) -> None:
        parked = self._parked.popleft()
        if parked.delta is not None:
            self.published.publish(parked.image, parked.delta)
        if parked.answer is not None:
            parked.answer()

    def _append(self, records: Sequence[Any], now_ms: int, answer: Callable[[], None] | None) -> None:
        writer = self.writer
        base = writer.log_end_offset
        version = metadata_version_of(self.image.features)
        # What cannot be appended as a whole must change nothing, so it is encoded first. And records that do
        # not fit the metadata must not reach the log, so they are replayed before they are appended.
        batches = [
            writer.encode(records[start : start + RECORDS_MAX], version, Offset(base + start), now_ms)
            for start in range(0, len(records), RECORDS_MAX)
        ]
        last = Position(Offset(base + len(records) - 1), writer.epoch, now_ms)
        self._loader.feed(records, last)
        self.image, delta = self._loader.take()
        for batch in batches:
            writer.append(batch, now_ms)
        assert writer.log_end_offset == last.offset + 1, "the log gives one offset to each record"
        self._parked.append(_Parked(last.offset, self.image, delta, answer))
