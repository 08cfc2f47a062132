"""What members of all modern groups have in common: their epochs, and how records describe them."""

from typing import Any, Final, Protocol, Self

LEFT: Final = -1
"""The epoch of a member that leaves, or has left."""
LEFT_FOR_NOW: Final = -2
"""The epoch of a static member that is away, and keeps what it has until its session ends."""


class ModernMember(Protocol):
    """A member of one kind of group. It changes by being replaced."""

    @property
    def member_id(self) -> str:
        """The id of the member."""

    @property
    def epoch(self) -> int:
        """The epoch that the member was given."""

    def with_metadata(self, value: Any) -> Self:
        """Return the member as a record describes it."""

    def with_current(self, value: Any) -> Self:
        """Return the member with what a record says that it has."""

    def without_current(self) -> Self:
        """Return the member as it is without such a record."""
