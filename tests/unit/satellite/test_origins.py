"""Web pages of others use no satellite through the browser of a developer who reads them."""

import pytest

from ottla.satellite.origins import find_refusal

NAMES = frozenset({"localhost", "127.0.0.1", "registry.example"})
OWN = {"host": "127.0.0.1:8081"}


@pytest.mark.parametrize(
    "headers",
    [
        # What clients send that are no browsers.
        {},
        OWN,
        {"host": "localhost:8081"},
        {"host": "Registry.Example."},
        {"host": "[::1]:8081"},
        {"host": "10.0.0.7:8081"},
        # A browser, asked by its user or by a page from here.
        {**OWN, "sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {**OWN, "sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8081"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_clients_are_let_in(method: str, headers: dict[str, str]) -> None:
    assert find_refusal(method, headers, NAMES) is None


@pytest.mark.parametrize(
    "headers",
    [
        {**OWN, "origin": "http://evil.example"},
        {**OWN, "origin": "null"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site", "origin": "http://127.0.0.1:9999"},
        # Another port of this machine is another origin, too, for browsers without Sec-Fetch-Site.
        {**OWN, "origin": "http://127.0.0.1:9999"},
        # A form that another page sends is a navigation.
        {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_pages_of_others_are_refused(headers: dict[str, str]) -> None:
    assert find_refusal("POST", headers, NAMES) is not None


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "127.0.0.1.evil.example", ""])
def test_names_that_were_not_configured_are_refused(host: str) -> None:
    refusal = find_refusal("GET", {"host": host}, NAMES)
    assert refusal is not None
    assert "--allow-host" in refusal


def test_links_can_be_followed_and_nothing_else_is_read() -> None:
    followed = {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert find_refusal("GET", followed, NAMES) is None
    assert find_refusal("GET", {**followed, "sec-fetch-mode": "no-cors"}, NAMES) is not None
