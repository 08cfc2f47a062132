"""Ranges of versions as Kafka writes them."""

import pytest

from ottla.wire.versions import NO_VERSIONS, VERSION_MAX, Versions, parse_versions


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0-3", Versions(0, 3)), ("4+", Versions(4, VERSION_MAX)), ("7", Versions(7, 7)), ("none", NO_VERSIONS)],
)
def test_text_and_range_agree(text: str, versions: Versions) -> None:
    assert parse_versions(text) == versions
    assert str(versions) == text


def test_both_ends_belong_to_a_range() -> None:
    assert [version for version in range(6) if version in Versions(2, 4)] == [2, 3, 4]
    assert list(Versions(2, 4).all) == [2, 3, 4]


def test_no_version_is_in_no_versions() -> None:
    assert not list(NO_VERSIONS.all)
    assert 0 not in NO_VERSIONS
    assert -1 not in NO_VERSIONS


@pytest.mark.parametrize("text", ["", "x", "1-x", "+"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_versions(text)
