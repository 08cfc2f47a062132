"""Items of an array that are encoded already, to stand in a message where the array would."""

from typing import Any


class EncodedItems:
    """How many items there are, and their bytes, one behind the other. The bytes are not looked at."""

    __slots__ = ("_length", "body")

    def __init__(self, length: int, body: bytes) -> None:
        self._length = length
        self.body = body

    def __len__(self) -> int:
        return self._length


def as_array(length: int, body: bytes) -> Any:
    """Return the items as what a field of a message can be given: its type says a tuple."""
    return EncodedItems(length, body)
