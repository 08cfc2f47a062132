"""What a satellite answers when it cannot do what it was asked."""


class HttpError(Exception):
    """An answer that is an error: an HTTP status, a code of the API, and a sentence."""

    def __init__(self, status: int, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = status if code is None else code
