"""The pages in a real browser: nothing complains, keys work, and pictures are made for the guide.

With CONSOLE_PICTURES naming a directory the pictures are kept there. With AXE naming the file axe.min.js of
the package axe-core, pages are checked for visitors who cannot see them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.driven_browser import DrivenBrowser, driven_browser
from tests.support.satellite_process import SatelliteProcess

pytestmark = pytest.mark.thorough(guard="tests/console/test_pages.py")

ORDERS = "/topics/shop.orders"
PAGES = (
    "",
    "/topics",
    ORDERS,
    f"{ORDERS}/records",
    f"{ORDERS}/records/0/5",
    f"{ORDERS}/records/0/5/journey",
    f"{ORDERS}/configs",
    f"{ORDERS}/live",
    f"{ORDERS}/search?q=c-1",
    f"{ORDERS}/produce",
    f"{ORDERS}/export",
    f"{ORDERS}/change",
    f"{ORDERS}/hot",
    f"{ORDERS}/letters",
    "/topics/hostile/records",
    *(f"/topics/hostile/records/0/{offset}" for offset in range(9)),
    "/create-topic",
    "/groups",
    "/groups/billing",
    "/groups/billing/reset",
    "/groups/billing/guarantees",
    "/transactions",
    "/schemas",
    "/connectors",
    "/nodes",
    "/access",
    "/journal",
)
PICTURES = {
    "console-topics": "/topics",
    "console-records": f"{ORDERS}/records",
    "console-why": "/groups/billing/why/silent?now=1",
}


@pytest.fixture(scope="module")
def console(filled: str) -> Iterator[str]:
    """The address of a console of the filled cluster."""
    with SatelliteProcess("console", filled) as running:
        yield f"{running.url}/c/cluster"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrivenBrowser]:
    """A browser."""
    with driven_browser(tmp_path_factory.mktemp("browser")) as driven:
        yield driven


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_no_page_complains_and_none_is_wider_than_its_window(
    console: str, browser: DrivenBrowser, look: str
) -> None:
    width = 390 if look == "narrow" else 1280
    browser.resize(width, 850, dark=look == "dark")
    axe = os.environ.get("AXE")
    for page in PAGES:
        browser.go(console + page)
        assert browser.evaluate("document.title") != "run", page
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
        if axe is not None:
            browser.evaluate(Path(axe).read_text() + ";0")
            assert browser.evaluate("axe.run().then((found) => found.violations.map((one) => one.id))") == []
    assert browser.complaints == []


def test_the_palette_leads_to_a_topic_by_keys_alone(console: str, browser: DrivenBrowser) -> None:
    browser.resize(1280, 850)
    browser.go(f"{console}/groups")
    browser.press("k", control=True)
    browser.wait_for("document.querySelector('dialog.palette').open")
    browser.type_text("shop.pay")
    browser.wait_for("document.querySelector('#found li')?.textContent.startsWith('shop.payments')")
    browser.press("Enter")
    browser.wait_for("location.pathname.endsWith('/topics/shop.payments')")


def test_a_filter_is_in_the_address_and_needs_no_click(console: str, browser: DrivenBrowser) -> None:
    browser.go(f"{console}/topics")
    browser.evaluate("document.querySelector('input[name=q]').focus()")
    browser.type_text("refunds")
    browser.wait_for("document.querySelectorAll('#list tbody tr').length === 1")
    browser.wait_for("location.search.includes('q=refunds')")


def test_times_can_be_shown_in_the_zone_of_the_visitor(console: str, browser: DrivenBrowser) -> None:
    browser.ask("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    browser.go(f"{console}{ORDERS}/records")
    first = "document.querySelector('td time').textContent"
    assert browser.evaluate(first).endswith(" UTC")
    browser.evaluate("document.querySelector('[data-zone]').click()")
    assert browser.evaluate(first).endswith(" GMT+9")
    browser.evaluate("document.querySelector('[data-zone]').click()")
    browser.ask("Emulation.setTimezoneOverride", timezoneId="")


def test_the_pictures_of_the_guide_are_made(console: str, browser: DrivenBrowser, tmp_path: Path) -> None:
    directory = Path(os.environ.get("CONSOLE_PICTURES", tmp_path))
    browser.resize(1280, 720)
    for name, page in PICTURES.items():
        browser.go(console + page)
        browser.wait_for(
            "document.fonts.status === 'loaded' && !document.querySelector('[hx-trigger^=load]')"
        )
        browser.picture(directory / f"{name}.png")
        assert (directory / f"{name}.png").stat().st_size > 10_000
