"""The active controller: it decides, appends what was decided, and answers when that is committed.

    request -> decide -> records -> append -> replay -> (synced) -> publish -> listeners -> reply

Two images are kept. `image` has everything that was appended, and is what decisions look at. The published
one has what is committed, and is what the rest of the node acts on. Replies leave in the order of the
decisions, and only after the listeners have acted: who is told that a topic exists can write to it at once.

A failure to write the log is not handled here. What was decided is in `image` then but in no log, so the only
way out is to stop the node and load the log again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage, Position
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.quorum.controller.decision import ControllerView, Decide, Randomness
from ottla.quorum.controller.settings import ControllerSettings

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")


class RecordWriter(Protocol):
    """The metadata log, as its leader writes it."""

    @property
    def log_end_offset(self) -> Offset:
        """Where the next record will lie."""

    def append(self, records: Sequence[Any], now_ms: int) -> Position:
        """Append records as one batch, and return where the last one lies.

        Committing is under way when this returns. `Controller.committed` is called when it is done, never
        from within `append`.
        """


class _Parked(NamedTuple):
    """An answer that waits until everything up to `position` is committed."""

    position: Position
    image: MetadataImage
    delta: MetadataDelta | None
    answer: Callable[[], None] | None


class Controller:
    """The one that changes the cluster's metadata."""

    def __init__(
        self,
        writer: RecordWriter,
        published: PublishedMetadata,
        settings: ControllerSettings,
        random: Randomness,
    ) -> None:
        self.image = published.image
        self.published = published
        self.settings = settings
        self._writer = writer
        self._random = random
        self._parked: deque[_Parked] = deque()

    def handle(
        self, decide: Decide[Ask, Reply], ask: Ask, now_ms: int, answer: Callable[[Reply], None]
    ) -> None:
        """Decide what to do about a request. `answer` is called when it is done, maybe at once."""
        view = ControllerView(self.image, self._writer.log_end_offset, now_ms, self.settings, self._random)
        decision = decide(view, ask)
        self._append(decision.records, now_ms, lambda: answer(decision.reply))

    def append(self, records: Sequence[Any], now_ms: int) -> None:
        """Append records that nobody waits for."""
        self._append(records, now_ms, None)

    def committed(self, offset: Offset) -> None:
        """Publish and answer what lies up to and including `offset`."""
        while self._parked and self._parked[0].position.offset <= offset:
            parked = self._parked.popleft()
            if parked.delta is not None:
                self.published.publish(parked.image, parked.delta)
            if parked.answer is not None:
                parked.answer()

    def _append(self, records: Sequence[Any], now_ms: int, answer: Callable[[], None] | None) -> None:
        if not records:
            # A refusal or a reading answer may rest on what is not committed yet, so it waits for that.
            if answer is not None and self._parked:
                self._parked.append(self._parked[-1]._replace(delta=None, answer=answer))
            elif answer is not None:
                answer()
            return
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        position = self._writer.append(records, now_ms)
        self.image = delta.apply(position)
        self._parked.append(_Parked(position, self.image, delta, answer))
