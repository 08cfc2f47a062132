"""What goes wrong with connectors."""

from typing import Final

from ottla.satellite.errors import HttpError


class RestError(HttpError):
    """An answer that is an error, with Kafka Connect's status and text."""


class ConnectError(Exception):
    """A connector or a task that cannot go on. It may be better after a while."""


class DataError(ConnectError):
    """A record that cannot be converted or transformed."""


RECORD_ERRORS: Final = (DataError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)
"""What is raised where a record is not what was expected."""


class ToleranceExceeded(ConnectError):
    """A record that the task may not leave out. Trying again would meet the same record."""


class Superseded(Exception):
    """A task that is not to start, since there is a newer one in its place."""


def not_found(name: str) -> RestError:
    """Return the error for a connector that does not exist."""
    return RestError(404, f"Connector {name} not found")


def unknown_connector(name: str, colon: str = "") -> RestError:
    """Return the error for a connector that cannot be paused, stopped or restarted, as it does not exist."""
    return RestError(404, f"Unknown connector{colon} {name}")
