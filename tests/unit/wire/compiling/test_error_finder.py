"""The errors of a message are found wherever they are, and nothing else is."""

from typing import Any

import pytest

from ottla.wire.apis import ApiKey, api_of
from ottla.wire.compiling.error_finder import compile_error_finder
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import Field, empty, layout_of


def errors_of(message: Any, version: int) -> list[ErrorCode]:
    found: list[ErrorCode] = []
    compile_error_finder(type(message), version)(message, found.append)
    return found


def with_errors_everywhere(struct: type[Any], version: int) -> tuple[Any, int]:
    """Return a message with one element in each array and an error in each place, and how many those are."""
    values, count = [], 0
    for field in layout_of(struct):
        value, errors = _value_of(field, version)
        values.append(value)
        count += errors
    return tuple.__new__(struct, values), count


def _value_of(field: Field, version: int) -> tuple[Any, int]:
    if version not in field.versions:
        return field.default, 0
    if field.struct is not None:
        value, errors = with_errors_everywhere(field.struct, version)
        return ((value,) if field.is_array else value), errors
    if field.kind == "error_code" and not field.is_array:
        return ErrorCode.UNKNOWN_SERVER_ERROR, 1
    return field.default, 0


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name)
def test_all_errors_of_every_answer_are_found(key: ApiKey) -> None:
    api = api_of(key)
    for version in range(api.versions.first, api.versions.last + 1):
        message, count = with_errors_everywhere(api.response, version)
        assert errors_of(message, version) == [ErrorCode.UNKNOWN_SERVER_ERROR] * count
        assert errors_of(empty(api.response), version) == []
