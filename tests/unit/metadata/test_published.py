"""Published metadata: listeners prepare first, and all of them are ready before anything is published."""

from collections.abc import Callable

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.metadata.published import PublishedMetadata

DELTA = MetadataDelta(EMPTY_IMAGE)


class Listener:
    """Is ready at once, or when the test says so."""

    def __init__(self, *, is_slow: bool) -> None:
        self.is_slow = is_slow
        self.waiting: list[Callable[[], None]] = []

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if self.is_slow:
            self.waiting.append(done)
        return not self.is_slow

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Do nothing."""


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
