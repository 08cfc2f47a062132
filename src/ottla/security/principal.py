"""Who a client is: a type and a name, as access rules and quotas know them."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """The client behind a connection, such as `User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""A client that did not log in, because its listener does not ask for it."""


def parse_principal(text: str) -> Principal:
    """Read a text such as `User:alice`."""
    kind, colon, name = text.partition(":")
    return Principal(kind, name) if colon else Principal("User", text)
