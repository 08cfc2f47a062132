"""The pages on internals and decisions are plain English too."""

from pathlib import Path

import pytest
from tests.tidy.source import ROOT
from tests.tidy.test_plain_words import find_turns

PAGES = sorted([*ROOT.glob("docs/internals/*.md"), *ROOT.glob("docs/decisions/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_in_plain_words(page: Path) -> None:
    assert find_turns(page.read_text()) == []
