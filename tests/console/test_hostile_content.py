"""Whatever is in records, headers, names and addresses: it is shown, and never is a part of the page."""

import re
from html.parser import HTMLParser

import pytest
from tests.console.filled import HOSTILE
from tests.support.console_visitor import ConsoleVisitor

ATTRIBUTES_THAT_RUN = re.compile(r"^on|^hx-on|^srcdoc$|^style$")
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
OURS = ("/static/", "/c/", "/api/", "?", "#", "/logout", "/login/")


class Reading(HTMLParser):
    """Notes what a page has that a browser would do something about."""

    def __init__(self) -> None:
        super().__init__()
        self.troubles: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if ATTRIBUTES_THAT_RUN.search(name):
                self.troubles.append(f"{tag} {name}")
            is_address = name in ("href", "src", "action", "hx-get", "hx-post")
            if is_address and value and value != "/" and not value.startswith(OURS):
                self.troubles.append(f"{tag} {name}={value}")
        names = {name for name, _ in attributes}
        if tag == "script" and "src" not in names:
            self.troubles.append("a script of its own")
        if tag in ("iframe", "object", "embed", "base", "b"):
            self.troubles.append(tag)


def check(page: str) -> None:
    reading = Reading()
    reading.feed(page)
    assert reading.troubles == []
    assert INVISIBLE.search(page) is None


@pytest.mark.parametrize("form", ["pretty", "raw", "hex"])
@pytest.mark.parametrize("offset", range(len(HOSTILE)))
def test_no_record_is_a_part_of_its_page(visitor: ConsoleVisitor, offset: int, form: str) -> None:
    check(visitor.page(f"/topics/hostile/records/0/{offset}?as={form}"))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/topics",
        "/groups",
        "/checks",
        "/topics/hostile/records",
        "/topics/hostile",
        "/groups?topic=hostile",
    ],
)
def test_no_list_runs_what_is_in_it(visitor: ConsoleVisitor, path: str) -> None:
    check(visitor.page(path))


@pytest.mark.parametrize(
    "path",
    [
        '/topics?q=<script>x</script>&prefix="><b>',
        "/topics?sort='\"><script>",
        "/groups?q=%E2%80%AE&state=<b>x</b>&kind=<b>",
        "/topics/<script>x</script>",
        "/groups/<img src=x>%E2%80%AE",
        "/topics/hostile/records?at=<script>x</script>",
        "/topics/hostile/records/0/<b>",
        "//<script>x</script>",
        "//c/<script>x</script>",
    ],
)
def test_no_address_is_a_part_of_its_page(visitor: ConsoleVisitor, path: str) -> None:
    check(visitor.get(path).text)


def test_invisible_characters_are_shown(visitor: ConsoleVisitor) -> None:
    assert "\\u202egnp.exe \\u200bhidden" in visitor.page("/topics/hostile/records/0/3")
    assert "\\x1b]0;title\\x07" in visitor.page("/topics/hostile/records/0/2")
