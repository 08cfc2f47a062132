"""What the wire raises: one error for bytes that are wrong, one for values that cannot be written."""


class WireError(ValueError):
    """The base of both."""


class MalformedBytes(WireError):
    """Bytes from the other side are not what the protocol says. The only error a decoder raises."""


class Unencodable(WireError):
    """A message holds a value that its type or this version of the protocol cannot carry."""
