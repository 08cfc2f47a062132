"""The guide lists all addresses of `/api`."""

import re
from pathlib import Path

from ottla.console.pages.routes import API

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "console.md"
WORDS = {"{topic}": "NAME", "{group}": "NAME"}


def test_every_address_of_the_api_is_in_the_guide() -> None:
    listed = re.findall(r"^\| `(/[^`?]+)", GUIDE.read_text(), re.MULTILINE)
    served = [
        re.sub(r"\{\w+\}", lambda found: WORDS.get(found[0], found[0][1:-1].upper()), route.path)
        for route in API
    ]
    assert sorted(listed) == sorted(served)
