"""A request that a group does not serve: the code to answer with, raised where it is found out."""

from ottla.wire.error_code import ErrorCode


class Refused(Exception):
    """Carries the error code to the code that builds the answer."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error_code.name)
        self.error_code = error_code
        self.message = message
        """A message for the client, if the answer has room for it."""
