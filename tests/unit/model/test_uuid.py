"""Kafka's ids and their text."""

import pytest

from ottla.model.uuid import METADATA_TOPIC_ID, ZERO_UUID, Uuid

RAW = bytes.fromhex("3f7cf1ee801f4d9f935a860e0f0344c4")
TEXT = "P3zx7oAfTZ-TWoYODwNExA"


def test_text_is_kafkas() -> None:
    assert str(Uuid(RAW)) == TEXT
    assert Uuid.from_text(TEXT) == Uuid(RAW)
    assert str(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("size", [0, 15, 17])
def test_only_16_bytes_are_an_id(size: int) -> None:
    with pytest.raises(ValueError, match=f"16 bytes, not {size}"):
        Uuid(bytes(size))


@pytest.mark.parametrize("text", ["", TEXT[:-1], TEXT + "A", TEXT + "==", "ä" * 22, "!" * 22, "+" + TEXT[1:]])
def test_what_is_not_the_text_of_an_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the text of an id"):
        Uuid.from_text(text)


def test_ids_are_dictionary_keys_and_sort_as_bytes() -> None:
    assert {Uuid(RAW): 1}[Uuid(bytearray(RAW))] == 1
    assert sorted([Uuid(RAW), ZERO_UUID]) == [ZERO_UUID, Uuid(RAW)]


def test_representation_shows_the_text() -> None:
    assert repr(Uuid(RAW)) == f"Uuid({TEXT!r})"
