"""Requests as the handlers of Connect see them."""

from typing import Any

import pytest

from ottla.connect.errors import RestError
from ottla.connect.serving.call import Call, as_config


def test_a_configuration_has_a_number_of_keys_that_are_checked_in_an_instant() -> None:
    assert len(as_config({f"k{number}": 1 for number in range(2_000)})) == 2_000
    with pytest.raises(RestError, match="2000 keys at most"):
        as_config({f"k{number}": 1 for number in range(2_001)})


@pytest.mark.parametrize("number", ["x", "٣", "9" * 5_000, ""])
def test_what_is_no_number_of_a_task_leads_nowhere(number: str) -> None:
    worker: Any = None
    with pytest.raises(RestError, match="404"):
        _ = Call(worker, {"task": number}, {}, {}, b"").task
