"""Loading: batches become an image, and records of a transaction count together or not at all."""

from typing import Any

import pytest

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE, Position
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


def feature(name: str) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=1)


def at(offset: int) -> Position:
    return Position(Offset(offset), 1, 0)


def loaded(*batches: list[Any]) -> MetadataLoader:
    loader = MetadataLoader(EMPTY_IMAGE)
    end = -1
    for batch in batches:
        end += len(batch)
        loader.feed(batch, at(end))
    return loader


def test_many_batches_make_one_image() -> None:
    image, delta = loaded([feature("a")], [feature("b"), feature("c")]).take()
    assert set(image.features) == {"a", "b", "c"} == set(delta.features.changed)
    assert image.offset == 2


def test_taking_twice_gives_only_what_is_new() -> None:
    loader = loaded([feature("a")])
    first, _ = loader.take()
    loader.feed([feature("b")], at(1))
    image, delta = loader.take()
    assert delta.base is first
    assert set(delta.features.changed) == {"b"}
    assert set(image.features) == {"a", "b"}


def test_an_unfinished_transaction_is_hidden() -> None:
    loader = loaded([feature("a")], [BeginTransactionRecord(), feature("b")], [feature("c")])
    image, _ = loader.take()
    assert set(image.features) == {"a"}
    assert image.offset == 0, "the image is the one before the transaction"
    assert loader.is_in_transaction


def test_a_finished_transaction_counts_as_a_whole() -> None:
    loader = loaded([BeginTransactionRecord(), feature("a")], [feature("b"), EndTransactionRecord()])
    image, _ = loader.take()
    assert set(image.features) == {"a", "b"}
    assert image.offset == 3
    assert not loader.is_in_transaction


def test_an_aborted_transaction_never_was() -> None:
    loader = loaded([BeginTransactionRecord(), feature("a")], [AbortTransactionRecord(), feature("b")])
    image, _ = loader.take()
    assert set(image.features) == {"b"}


def test_an_image_taken_within_a_transaction_is_followed_by_the_whole_of_it() -> None:
    loader = loaded([feature("a"), BeginTransactionRecord(), feature("b")])
    assert set(loader.take()[0].features) == {"a"}
    loader.feed([EndTransactionRecord()], at(3))
    image, delta = loader.take()
    assert set(image.features) == {"a", "b"}
    assert set(delta.features.changed) == {"b"}


@pytest.mark.parametrize(
    "records",
    [
        [BeginTransactionRecord(), BeginTransactionRecord()],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
    ],
    ids=["begun twice", "ended", "aborted"],
)
def test_transactions_that_do_not_fit_together_are_refused(records: list[Any]) -> None:
    with pytest.raises(MetadataError, match="transaction"):
        loaded(records)


def test_batches_go_forward() -> None:
    loader = loaded([feature("a"), feature("b")])
    with pytest.raises(MetadataError, match="comes after"):
        loader.feed([feature("c")], at(1))
    with pytest.raises(MetadataError, match="comes after"):
        loader.skip(at(1))
