"""The pages on internals and decisions are plain English too."""

import re
from pathlib import Path

import pytest
from tests.tidy.source import ROOT
from tests.tidy.test_plain_words import find_turns

PAGES = sorted([*ROOT.glob("docs/internals/*.md"), *ROOT.glob("docs/decisions/*.md")])
_FILE_MAP = re.compile(r"^## (?:File map|Files)\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_in_plain_words(page: Path) -> None:
    assert find_turns(_FILE_MAP.sub("", page.read_text())) == []
