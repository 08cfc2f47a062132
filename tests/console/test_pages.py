"""What the pages show of a cluster, and that `/api` gives what the commands print."""

import json
import re
from typing import Any

import pytest
from tests.cli.typing import succeed
from tests.support.console_visitor import ConsoleVisitor

PAGES = (
    "",
    "/checks",
    "/topics",
    "/topics/shop.orders",
    "/topics/shop.orders/records",
    "/topics/shop.orders/configs",
    "/topics/shop.orders/records/0/0",
    "/groups",
    "/groups/billing",
)


def text_of(page: str) -> str:
    """Return what is to be read on a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there(visitor: ConsoleVisitor, path: str) -> None:
    page = visitor.page(path)
    assert "Undefined" not in page
    assert "None" not in text_of(page).replace("None yet", "")


def test_the_first_address_leads_to_the_only_cluster(visitor: ConsoleVisitor) -> None:
    assert visitor.get("///").headers["location"] == "/c/c"


def test_the_list_of_topics_has_records_groups_and_lag(visitor: ConsoleVisitor) -> None:
    page = text_of(visitor.page("/topics"))
    assert "5 of 5 topics" in page
    assert re.search(r"shop\.orders 3 1 300 [\d.]+ kB billing 180 ● in sync", page)


def test_topics_are_filtered_by_the_server(visitor: ConsoleVisitor) -> None:
    page = text_of(visitor.page("/topics?q=PAY"))
    assert "1 of 5 topics" in page
    assert "shop.payments" in page
    assert "shop.orders" not in page
    page = text_of(visitor.page("/topics?prefix=shop."))
    assert "4 of 5 topics" in page
    assert "__consumer_offsets" in visitor.page("/topics?internal=1")


def test_a_topic_that_is_not_there_is_a_sentence(visitor: ConsoleVisitor) -> None:
    answer = visitor.get("/topics/nowhere")
    assert answer.status_code == 404
    assert "nowhere" in answer.text
    assert "look for it in the list" in answer.text
    assert visitor.get("/nowhere").status_code == 404


def test_a_config_says_where_it_comes_from_and_what_it_means(visitor: ConsoleVisitor) -> None:
    page = text_of(visitor.page("/topics/shop.customers/configs"))
    assert re.search(r"cleanup\.policy compact set on this topic What happens to old records", page)
    assert re.search(r"retention\.bytes -1 the default", page)


def test_a_group_shows_its_lag_in_records_and_time(visitor: ConsoleVisitor) -> None:
    page = text_of(visitor.page("/groups/billing"))
    assert "Kind classic" in page
    assert re.search(r"Lag 180", page)
    assert "old Members 0" in page


def test_a_group_may_have_any_name(visitor: ConsoleVisitor) -> None:
    page = visitor.page("/groups")
    (link,) = re.findall(r'href="(/c/c/groups/%3Cscript[^"]+)"', page)
    assert "hostile" in visitor.page(link.removeprefix("/c/c"))
    assert visitor.get("/groups/nobody").status_code == 404


def test_the_palette_finds_topics_and_groups(visitor: ConsoleVisitor) -> None:
    found = visitor.get("//api/c/c/search?q=bill").json()
    assert found == [{"kind": "group", "name": "billing", "url": "/c/c/groups/billing"}]
    names = [one["name"] for one in visitor.get("//api/c/c/search?q=shop.").json()]
    assert names == ["shop.orders", "shop.refunds", "shop.payments", "shop.customers"]


SAME_AS_COMMANDS = {
    "/topics": ("topic", "list"),
    "/topics?internal=1": ("topic", "list", "--internal"),
    "/topics/shop.orders": ("topic", "describe", "shop.orders"),
    "/topics/shop.customers/configs": ("config", "get", "topic", "shop.customers"),
    "/groups": ("group", "list"),
}


@pytest.mark.parametrize("path", SAME_AS_COMMANDS)
def test_the_api_gives_what_the_command_prints(visitor: ConsoleVisitor, filled: str, path: str) -> None:
    printed: Any = json.loads(succeed(*SAME_AS_COMMANDS[path], "--json", "--bootstrap", filled).out)
    assert visitor.get(f"//api/c/c{path}").json() == printed


def test_the_api_tells_errors_as_json(visitor: ConsoleVisitor) -> None:
    answer = visitor.get("//api/c/c/topics/nowhere")
    assert answer.status_code == 404
    assert "nowhere" in answer.json()["error"]


def test_the_api_gives_records_as_consume_prints_them(visitor: ConsoleVisitor, filled: str) -> None:
    lines = succeed("consume", "shop.payments", "--json", "--bootstrap", filled).out.splitlines()
    printed = [json.loads(line) for line in lines]
    answer = visitor.get("//api/c/c/topics/shop.payments/records?count=500").json()
    key = "partition", "offset"
    assert sorted(answer["records"], key=lambda row: [row[one] for one in key]) == sorted(
        printed, key=lambda row: [row[one] for one in key]
    )
    assert answer["before"] is None
