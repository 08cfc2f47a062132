"""Published metadata: listeners prepare first, and all of them are ready before anything is published."""

from collections.abc import Callable

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage, Position
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.wire.metadata_records.features import FeatureLevelRecord

DELTA = MetadataDelta(EMPTY_IMAGE)
CHANGE = MetadataDelta(EMPTY_IMAGE)
CHANGE.replay(FeatureLevelRecord(name="metadata.version", feature_level=30))
IMAGE = CHANGE.apply(Position(Offset(0), 1, 0))


class Listener:
    """Is ready at once, or when the test says so."""

    def __init__(self, *, is_slow: bool = False, is_broken: bool = False) -> None:
        self.is_slow = is_slow
        self.is_broken = is_broken
        self.waiting: list[Callable[[], None]] = []
        self.seen: list[MetadataImage] = []

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if self.is_broken:
            raise TypeError("it cannot prepare")
        if self.is_slow:
            self.waiting.append(done)
        return not self.is_slow

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        if self.is_broken:
            raise TypeError("it cannot act")
        self.seen.append(image)


def test_without_anything_to_prepare_all_is_ready() -> None:
    published = PublishedMetadata()
    published.listen(Listener(is_slow=False))
    calls: list[str] = []
    assert published.prepare(EMPTY_IMAGE, DELTA, lambda: calls.append("done"))
    assert calls == [], "who is told at once is not called back"


def test_the_slowest_listener_is_waited_for() -> None:
    published = PublishedMetadata()
    listeners = [Listener(is_slow=True), Listener(is_slow=False), Listener(is_slow=True)]
    for listener in listeners:
        published.listen(listener)
    calls: list[str] = []
    assert not published.prepare(EMPTY_IMAGE, DELTA, lambda: calls.append("done"))
    listeners[2].waiting.pop()()
    assert calls == []
    listeners[0].waiting.pop()()
    assert calls == ["done"]


def test_a_listener_that_fails_is_reported_and_does_not_end_the_change() -> None:
    reports: list[str] = []
    published = PublishedMetadata(lambda _what, error: reports.append(str(error)))
    others = [Listener(), Listener()]
    for listener in (others[0], Listener(is_broken=True), others[1]):
        published.listen(listener)
    assert published.prepare(EMPTY_IMAGE, DELTA, lambda: None), "nobody else needs time"
    published.publish(IMAGE, CHANGE)
    assert [listener.seen for listener in others] == [[IMAGE], [IMAGE]]
    assert reports == ["it cannot prepare", "it cannot act"]
    assert published.errors == 2
