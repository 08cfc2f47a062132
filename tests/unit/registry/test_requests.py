"""Bodies of requests about schemas."""

import pytest

from ottla.registry.deciding.requests import read_request
from ottla.registry.errors import RegistryError


@pytest.mark.parametrize("name", ["id", "version"])
def test_numbers_have_four_bytes(name: str) -> None:
    assert read_request({name: 2**31 - 1, "schema": "{}"}).text == "{}"
    for number in (2**31, -2, 10**4000):
        # The ids of all later schemas would follow it.
        with pytest.raises(RegistryError, match=f"Cannot deserialize {name}"):
            read_request({name: number, "schema": "{}"})


@pytest.mark.parametrize("tags", [["a"], {"a": "x"}, {"a": [{"x": 1}]}, {"a": [1]}])
def test_tags_are_lists_of_texts(tags: object) -> None:
    assert read_request({"metadata": {"tags": {"a": ["b"]}}}).metadata == {"tags": {"a": ["b"]}}
    with pytest.raises(RegistryError, match=r"metadata\.tags"):
        read_request({"metadata": {"tags": tags}})
