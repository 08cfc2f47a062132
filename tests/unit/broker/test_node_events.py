"""Parts of a node that are told of something: one that fails keeps nobody from the others."""

from ottla.broker.node_events import NodeEvents
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.metadata.published import PublishedMetadata


def make() -> tuple[NodeEvents, PublishedMetadata, list[str]]:
    reports: list[str] = []
    metadata = PublishedMetadata(lambda message, _error: reports.append(message))
    return NodeEvents(metadata, lambda message, _error: reports.append(message)), metadata, reports


def fail(*_args: object) -> None:
    raise RuntimeError("a bug of ours")


def test_all_parts_act_on_metadata_although_one_fails() -> None:
    events, metadata, reports = make()
    seen: list[int] = []

    def late(image: MetadataImage, _delta: MetadataDelta) -> None:
        seen.append(image.offset)

    def early(_image: MetadataImage, _delta: MetadataDelta) -> None:
        # A part that is made meanwhile knows the new metadata already.
        events.of_metadata.append(late)

    events.of_metadata += (fail, early, late)
    events.metadata_changed(EMPTY_IMAGE, MetadataDelta(EMPTY_IMAGE))
    assert seen == [EMPTY_IMAGE.offset]
    assert (metadata.errors, len(reports)) == (1, 1)


def test_all_parts_use_new_configs_although_one_fails() -> None:
    events, metadata, _ = make()
    seen: list[str] = []
    events.of_configs += (fail, lambda: seen.append("used"))
    events.configs_changed()
    assert (seen, metadata.errors) == (["used"], 1)


def test_all_parts_stop_although_one_fails() -> None:
    events, metadata, reports = make()
    seen: list[str] = []
    events.of_stop += (fail, lambda: seen.append("stopped"))
    events.stop()
    assert (seen, reports, metadata.errors) == (["stopped"], ["a part of the node that stops"], 0)
