"""Client metrics subscriptions select clients by patterns."""

import pytest

from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.configs.subscriptions import check_subscription, parse_selectors


def test_selectors_are_regular_expressions_by_name() -> None:
    selectors = parse_selectors(("client_id=app-.*", "client_source_port = 1[0-9]+"))
    assert selectors["client_id"].fullmatch("app-7")
    assert selectors["client_source_port"].fullmatch("123")


@pytest.mark.parametrize("pattern", ["client_id", "nobody=x", "client_id=["])
def test_a_selector_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ChangeRefused, match="Illegal client matching pattern"):
        parse_selectors((pattern,))


def test_a_subscription_needs_a_name_and_a_sane_interval() -> None:
    check_subscription("m", {"interval.ms": "100", "match": "client_id=x", "metrics": "*"})
    with pytest.raises(ChangeRefused, match="name"):
        check_subscription("", {})
    with pytest.raises(ChangeRefused, match="between 100 and 3600000"):
        check_subscription("m", {"interval.ms": "99"})
