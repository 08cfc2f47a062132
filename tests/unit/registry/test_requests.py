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
