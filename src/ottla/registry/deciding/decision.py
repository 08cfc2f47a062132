"""What is written, and what is answered when it is."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.schemas.stored.records import Record

T = TypeVar("T")


@dataclass(frozen=True)
class Decision(Generic[T]):
    """Records to write, perhaps none, and the answer for when all instances can read them."""

    answer: T
    records: list[Record] = field(default_factory=list)
