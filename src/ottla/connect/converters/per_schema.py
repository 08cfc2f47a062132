"""What a converter makes once for each schema.

Schemas are distinguished by identity: a source gives all records of a table the same object. Values without a
schema get a new one each, so the number is bounded.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from ottla.connect.data.schema import Schema

_SCHEMAS_MAX: Final = 1000
T = TypeVar("T")


class PerSchema(Generic[T]):
    """Makes something for a schema, and remembers it."""

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        self._made: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        """Return what belongs to a schema."""
        found = self._made.get(id(schema))
        if found is None or found[0] is not schema:
            if len(self._made) >= _SCHEMAS_MAX:
                self._made.clear()
            found = self._made[id(schema)] = (schema, self._make(schema))
        return found[1]
