"""What the wire raises: one error for bytes that are wrong, one for values that cannot be written.

A value that another version could carry has an error of its own: a client of an old broker tells it so.
"""


class WireError(ValueError):
    """The base of both."""


class MalformedBytes(WireError):
    """Bytes from the other side are not what the protocol says. The only error a decoder raises."""


class Unencodable(WireError):
    """A message holds a value that its type or this version of the protocol cannot carry."""


class NotInVersion(Unencodable):
    """A field is set that this version of the protocol does not have, and that a reader may not ignore."""

    def __init__(self, field: str, version: int) -> None:
        super().__init__(f"{field} is set, but version {version} has no such field")
        self.field = field
        self.version = version
