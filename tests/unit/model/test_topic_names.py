"""A topic's name is a file name that any system takes."""

import pytest

from ottla.model.topic_names import collision_key, find_topic_name_fault


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_a_legal_name_has_no_fault(name: str) -> None:
    assert find_topic_name_fault(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", "\0"])
def test_another_name_has_a_fault(name: str) -> None:
    assert (find_topic_name_fault(name) or "").startswith("Topic name is invalid")


def test_names_collide_that_differ_only_in_dots_and_underscores() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("ab")
